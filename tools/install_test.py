#!/usr/bin/env python3
"""Runs tools/install in a small copy of the repository, whose libraries a stand-in for Bazel has "built" with cc."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

_BAZEL = """#!/bin/sh
case $1 in
  build) exit 0 ;;
  info) echo "$FAKE_OUTPUTS" ;;
esac
"""
_MAKER = """import sys
with open(sys.argv[1] + "/made.7", "w") as page:
    page.write(".TH made 7")
"""
_TABLE = """
header  vipl/include/vipl.h     include
header  dat/include/dat2/*.h    include/dat2   # all of them
library //dat/core:libengine.so.1
library //vipl:libface.so.1     libface.so libold.so
program //tools/info:info
manual  */man/*.[1-8]
built_manual //vipl/man:built.7
made_manual vipl/man/maker.py
text    LICENSE                 share/doc/face
config  face face               A face
"""

# Runs tools/install, which gets a signal just before it calls a function of os for the nth time.
_INTERRUPTED = """import importlib.machinery, os, sys
path, signal, name, times, *sys.argv[1:] = sys.argv[1:]
called, function = [], getattr(os, name)
def interrupted(*arguments):
    called.append(arguments)
    if len(called) == int(times):
        os.kill(os.getpid(), int(signal))
    function(*arguments)
setattr(os, name, interrupted)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(path))
sys.exit(importlib.machinery.SourceFileLoader("install", path).load_module().main())
"""


def _cc(*arguments):
    subprocess.run(("cc",) + arguments, check=True)


class Install(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls._built = folder.name + "/outputs"
        for path, text in (("engine.c", "int engine(void) { return 7; }"), ("info.c", "int main(void) { return 0; }"),
                           ("face.c", "int engine(void); int face(void) { return engine(); }")):
            with open(os.path.join(folder.name, path), "w", encoding="utf-8") as out:
                out.write(text + "\n")
        for name in ("dat/core", "vipl/man", "tools/info"):
            os.makedirs("%s/%s" % (cls._built, name))
        with open(cls._built + "/vipl/man/built.7", "w", encoding="utf-8") as page:
            page.write(".TH built 7\n")
        engine = cls._built + "/dat/core/libengine.so.1"
        _cc("-shared", "-fPIC", "-Wl,-soname,libengine.so.1", "-o", engine, folder.name + "/engine.c")
        _cc("-shared", "-fPIC", "-Wl,-soname,libface.so.1", "-Wl,-rpath,$ORIGIN", "-o", cls._built + "/vipl/libface.so.1",
            folder.name + "/face.c", engine)
        _cc("-o", cls._built + "/tools/info/info", folder.name + "/info.c")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._here = folder.name
        self._repository = self._here + "/repository"
        self._outputs = self._here + "/outputs"
        self._home = self._here + "/home"
        self._prefix = self._home + "/a/prefix"
        os.mkdir(self._home)
        for name in ("install", "common.sh", "packages", "shell.py"):
            os.makedirs(self._repository + "/tools", exist_ok=True)
            shutil.copy("tools/" + name, self._repository + "/tools")
        self._write("repository/tools/install_files", _TABLE)
        self._write("repository/tools/setup", "#!/bin/sh\n", 0o755)
        self._write("repository/verbs/base/version.h", '#define VIADUCT_VERSION "3.2.1"\n')
        self._write("repository/vipl/include/vipl.h", "int face(void);\n")
        self._write("repository/dat/include/dat2/udat.h", "")
        self._write("repository/dat/include/dat2/dat.h", "")
        self._write("repository/vipl/man/face.3", ".TH face 3\n")
        self._write("repository/vipl/man/maker.py", _MAKER)
        self._write("repository/LICENSE", "Do what you like.\n")
        self._write("bazel", _BAZEL, 0o755)
        shutil.copytree(self._built, self._outputs)

    def _write(self, path, text, mode=0o644):
        path = os.path.join(self._here, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)

    def _install(self, *arguments, command=(), **environment):
        environment = dict(os.environ, VIADUCT_BAZEL=self._here + "/bazel", FAKE_OUTPUTS=self._outputs, HOME=self._home + "2",
                           XDG_CACHE_HOME=self._here + "/cache", **environment)
        result = subprocess.run([*command, self._repository + "/tools/install", *arguments], env=environment, cwd=self._home,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return result.returncode, result.stdout

    def _succeeds(self, *arguments, **environment):
        code, output = self._install(*arguments, **environment)
        self.assertEqual(code, 0, output)
        return output

    def _fails(self, complaint, *arguments, command=()):
        code, output = self._install(*arguments, command=command)
        self.assertEqual(code, 1, output)
        self.assertIn(complaint, output)

    def _files(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self._home)
                      for folder, folders, names in os.walk(self._home) for name in folders + names)

    def _contents(self):
        """{path: content or target}"""
        contents = {}
        for name in self._files():
            path = os.path.join(self._home, name)
            if os.path.islink(path):
                contents[name] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as content:
                    contents[name] = content.read()
        return contents

    def test_everything_lands_in_its_place(self):
        self._succeeds(self._prefix)
        root = "a/prefix/"
        found = [name[len(root):] for name in self._files() if not os.path.isdir(os.path.join(self._home, name))]
        self.assertEqual(found, [
            "bin/info", "include/dat2/dat.h", "include/dat2/udat.h", "include/vipl.h", "lib/libengine.so.1", "lib/libface.so",
            "lib/libface.so.1", "lib/libold.so", "lib/pkgconfig/face.pc", "share/doc/face/LICENSE",
            "share/man/man3/face.3", "share/man/man7/built.7", "share/man/man7/made.7", "share/viaduct/manifest"])
        self.assertEqual(os.readlink(self._prefix + "/lib/libold.so"), "libface.so.1")
        self.assertTrue(os.access(self._prefix + "/bin/info", os.X_OK))

    def test_a_program_builds_and_runs_against_it(self):
        self._succeeds("a/prefix")  # from the current folder
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "face"], check=True, stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, PKG_CONFIG_PATH=self._prefix + "/lib/pkgconfig")).stdout.split()
        self._write("old.c", "#include <vipl.h>\nint main(void) { return face() - 7; }\n")
        _cc("-o", self._here + "/old", self._here + "/old.c", *flags)
        self.assertEqual(subprocess.run([self._here + "/old"], check=False, env={}).returncode, 0)
        version = subprocess.run(["pkg-config", "--modversion", "face"], check=True, stdout=subprocess.PIPE, text=True,
                                 env=dict(os.environ, PKG_CONFIG_PATH=self._prefix + "/lib/pkgconfig")).stdout
        self.assertEqual(version, "3.2.1\n")

    def test_remove_undoes_it_exactly(self):
        self._write("home/keep/me", "")
        before = self._files()
        self._succeeds(self._prefix)
        self._succeeds("--remove", self._prefix)
        self.assertEqual(self._files(), before)

    def test_remove_leaves_what_others_put_beside(self):
        self._succeeds(self._prefix)
        self._write("home/a/prefix/lib/other", "")
        self._succeeds("--remove", self._prefix)
        self.assertEqual(self._files(), ["a", "a/prefix", "a/prefix/lib", "a/prefix/lib/other"])

    def test_remove_leaves_a_changed_file_and_says_so(self):
        self._succeeds(self._prefix)
        self._write("home/a/prefix/include/vipl.h", "changed\n")
        self._fails("prefix/include/vipl.h", "--remove", self._prefix)
        self.assertEqual(self._files(), [
            "a", "a/prefix", "a/prefix/include", "a/prefix/include/vipl.h", "a/prefix/share", "a/prefix/share/viaduct",
            "a/prefix/share/viaduct/manifest"])
        # The manifest still lists the file, so that it goes when it is as it was.
        self._write("home/a/prefix/include/vipl.h", "int face(void);\n")
        self._succeeds("--remove", self._prefix)
        self.assertEqual(self._files(), [])

    def test_installing_again_replaces(self):
        before = self._files()
        self._succeeds(self._prefix)
        os.unlink(self._repository + "/dat/include/dat2/dat.h")
        self._succeeds(self._prefix)
        self.assertNotIn("a/prefix/include/dat2/dat.h", self._files())
        self._succeeds("--remove", self._prefix)
        self.assertEqual(self._files(), before)

    def test_installing_again_over_a_changed_file_does_nothing_and_says_so(self):
        self._succeeds(self._prefix)
        self._write("home/a/prefix/include/vipl.h", "changed\n")
        before = self._contents()
        self._write("repository/dat/include/dat2/dat.h", "newer\n")
        self._fails("prefix/include/vipl.h", self._prefix)
        self.assertEqual(self._contents(), before)
        os.unlink(self._prefix + "/include/vipl.h")
        self._succeeds(self._prefix)
        self._succeeds("--remove", self._prefix)
        self.assertEqual(self._files(), [])

    def test_an_upgrade_that_fails_leaves_what_was_there(self):
        self._succeeds(self._prefix)
        self._write("home/a/prefix/include/dat2/newer.h", "somebody's\n")
        before = self._contents()
        self._write("repository/vipl/include/vipl.h", "int face(void); /* newer */\n")
        with self.subTest("a foreign file in the way"):
            self._write("repository/dat/include/dat2/newer.h", "")
            self._fails("was not installed by tools/install", self._prefix)
            self.assertEqual(self._contents(), before)
            os.unlink(self._repository + "/dat/include/dat2/newer.h")
        with self.subTest("a full disk"):
            self._fails("too large", self._prefix, command=("sh", "-c", 'ulimit -f 8; exec "$@"', "sh"))
            self.assertEqual(self._contents(), before)
        with self.subTest("a program that was not built"):
            os.unlink(self._outputs + "/tools/info/info")
            self._fails("tools/info/info", self._prefix)
            self.assertEqual(self._contents(), before)

    def test_a_full_disk_leaves_nothing(self):
        self._fails("too large", self._prefix, command=("sh", "-c", 'ulimit -f 8; exec "$@"', "sh"))
        self.assertEqual(self._files(), [])

    def _is_interrupted(self, number, function, times):
        self.assertEqual(self._install("%d" % number, function, "%d" % times, self._prefix,
                                       command=(sys.executable, "-c", _INTERRUPTED)), (128 + number, ""))

    def test_interrupted_it_leaves_nothing(self):
        for number, function, times in ((signal.SIGTERM, "mkdir", 3), (signal.SIGHUP, "rename", 5),
                                        (signal.SIGINT, "symlink", 2)):
            with self.subTest(function):
                self._is_interrupted(number, function, times)
                self.assertEqual(self._files(), [])

    def test_a_signal_ends_it_after_setup(self):
        self._write("repository/tools/setup", """#!/bin/sh
trap : TERM
echo >"$HERE/running"
cat "$HERE/gate"
echo >"$HERE/ended"
exit 143
""", 0o755)
        for name in ("running", "gate"):
            os.mkfifo(self._here + "/" + name)
        with subprocess.Popen([self._repository + "/tools/install", self._prefix], env=dict(os.environ, HERE=self._here),
                              cwd=self._home) as install:
            with open(self._here + "/running", encoding="utf-8") as line:
                line.read()
            install.send_signal(signal.SIGTERM)
            with open(self._here + "/gate", "w", encoding="utf-8"):
                pass
        self.assertEqual(install.returncode, 143)
        self.assertTrue(os.path.exists(self._here + "/ended"))
        self.assertEqual(self._files(), [])

    def test_an_upgrade_that_is_interrupted_can_be_removed_or_repeated(self):
        self._succeeds(self._prefix)
        before = self._contents()
        self._write("repository/vipl/include/vipl.h", "int face(void); /* newer */\n")
        self._write("repository/vipl/man/newer.5", ".TH newer 5\n")
        self._is_interrupted(signal.SIGTERM, "chmod", 3)  # when not all is ready
        self.assertEqual(self._contents(), before)
        self._is_interrupted(signal.SIGTERM, "rename", 5)
        self._is_interrupted(signal.SIGTERM, "symlink", 2)
        shutil.copytree(self._prefix, self._here + "/copy", symlinks=True)
        self._succeeds("--remove", self._prefix)
        self.assertEqual(self._files(), [])
        shutil.copytree(self._here + "/copy", self._prefix, symlinks=True)
        self._succeeds(self._prefix)
        self.assertIn("share/man/man5/newer.5", str(self._files()))
        self._succeeds("--remove", self._prefix)

    def test_a_foreign_file_is_never_overwritten(self):
        self._write("home/a/prefix/lib/libface.so", "somebody's\n")
        before = self._files()
        self._fails("was not installed by tools/install", self._prefix)
        self.assertEqual(self._files(), before)

    def test_a_damaged_manifest_is_told(self):
        self._succeeds(self._prefix)
        for damage in (b"\n", b"file /x\n", b"\xff x\n"):
            with open(self._prefix + "/share/viaduct/manifest", "wb") as manifest:
                manifest.write(damage)
            for arguments in ((self._prefix,), ("--remove", self._prefix)):
                self._fails("manifest is damaged", *arguments)

    def test_an_empty_prefix_is_refused(self):
        for arguments in (("",), ("--remove", "")):
            code, output = self._install(*arguments)
            self.assertEqual(code, 2, output)
            self.assertIn("PREFIX is empty", output)
        self.assertEqual(self._files(), [])

    def test_remove_where_nothing_is(self):
        self._fails("nothing is installed", "--remove", self._prefix)

    def test_destdir_is_not_in_the_files(self):
        stage = self._home + "/stage"
        os.mkdir(stage)
        before = self._files()
        self._succeeds("/opt/viaduct", DESTDIR=stage)
        with open(stage + "/opt/viaduct/lib/pkgconfig/face.pc", encoding="utf-8") as config:
            self.assertIn("prefix=/opt/viaduct\n", config.read())
        self._succeeds("--remove", "/opt/viaduct", DESTDIR=stage)
        self.assertEqual(self._files(), before)

    def test_a_run_path_leads_to_the_libraries_wherever_the_loader_looks(self):
        for prefix in "/opt/viaduct", "/usr/local", "/usr":
            with self.subTest(prefix):
                stage = self._home + "/stage"
                self._succeeds(prefix, DESTDIR=stage)
                with open(stage + prefix + "/lib/pkgconfig/face.pc", encoding="utf-8") as config:
                    self.assertIn("Libs: -L${libdir} -Wl,-rpath,${libdir} -lface\n", config.read())

    def test_missing_packages_are_named(self):
        self._write("engine.c", "int engine(void) { return 7; }\n")
        for name, soname in (("absl_cord", "libabsl_cord.so.20220623"), ("isal", "libisal.so.2")):
            _cc("-shared", "-fPIC", "-Wl,-soname," + soname, "-o", "%s/lib%s.so" % (self._here, name), self._here + "/engine.c")
        _cc("-shared", "-fPIC", "-Wl,-soname,libengine.so.1", "-Wl,--no-as-needed", "-o",
            self._outputs + "/dat/core/libengine.so.1", self._here + "/engine.c", "-L" + self._here, "-labsl_cord", "-lisal")
        # Names that no machine has, so that the test means the same where the packages are installed.
        path = self._outputs + "/dat/core/libengine.so.1"
        with open(path, "rb") as library:
            content = library.read()
        with open(path, "wb") as library:
            library.write(content.replace(b"so.20220623", b"so.19990101").replace(b"libisal.so.2", b"libisal.so.9"))
        self._fails("these Debian packages are missing: libabsl19990101 libisal9", self._prefix)

    def test_help_names_what_it_minds(self):
        output = self._succeeds("--help")
        self.assertIn("DESTDIR", output)
        self.assertIn("manifest", output)

    def test_white_space_is_refused(self):
        self._fails("not supported", self._home + "/a b")

    def test_what_no_run_path_can_hold_is_refused(self):
        for name in ("/a,b", "/a:b"):
            with self.subTest(name):
                code, output = self._install(self._home + name)
                self.assertEqual(code, 2, output)
                self.assertIn("a run path cannot hold a comma or a colon: %s%s\n" % (self._home, name), output)
                self.assertEqual(self._files(), [])
        self._succeeds("/viaduct", DESTDIR=self._home + "/a,b:c")  # which is in no run path
        self._succeeds("--remove", "/viaduct", DESTDIR=self._home + "/a,b:c")


if __name__ == "__main__":
    unittest.main()
