#!/usr/bin/env python3
"""datinfo's output, as text and as JSON, and what its checks find."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from tools.build_rules import python_main

_PROGRAM = os.path.abspath("tools/datinfo/datinfo")
_OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]
_MAY_MOUNT = subprocess.run([*_OWN_MOUNTS, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
# Runs a program without a right of root's where /etc has nothing but dat.conf, of the kind $1.
_OTHER_ETC = """mount -t tmpfs none /etc || exit
case $1 in
  folder) mkdir /etc/dat.conf ;;
  link) ln -s dat.conf /etc/dat.conf ;;
  text) echo >/etc/dat.conf ;;
  secret) echo >/etc/dat.conf; chmod 0 /etc/dat.conf ;;
esac
shift
exec setpriv --bounding-set=-all "$@"
"""
_CONF = """
mine u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "lo" ""
gone u2.0 nonthreadsafe default /nonexistent/lib.so x.1.0 "" ""
"""
_AWAY = """
away u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "no-such-if" ""
"""


def run(*arguments, conf=_CONF, stdout=subprocess.PIPE, cwd=None, **variables):
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(conf)
        file.flush()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "DAT_"))}
        environment.update({"DAT_OVERRIDE": file.name, **variables})
        done = subprocess.run([_PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd,
                              check=False)
        return done


def document(*arguments, **keywords):
    return json.loads(run("--json", *arguments, **keywords).stdout)


class OldProgram:
    """`old`, in a folder of its own, needs libdat.so.1, which is in a folder that no loader searches."""

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.libraries = self.folder + "/the libraries"
        os.makedirs(self.libraries + "/engine")
        self._write("dat.c", "int dat(void) { return 0; }\n")
        self._write("old.c", "int dat(void);\nint main(void) { return dat(); }\n")
        self._make("-shared", "-Wl,-soname,libviaduct.so.1", "-o", self.libraries + "/engine/libviaduct.so.1", "dat.c")
        self._make("-shared", "-Wl,-soname,libdat.so.1", "-Wl,--no-as-needed,-rpath,$ORIGIN/engine", "-o", self.libraries + "/libdat.so.1",
                   "dat.c", self.libraries + "/engine/libviaduct.so.1")
        self._make("-Wl,-rpath,$ORIGIN/beside", "-o", "old", "old.c", self.libraries + "/libdat.so.1")

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
            out.write(text)

    def _make(self, *arguments):
        subprocess.run(["cc", "-fPIC", *arguments], cwd=self.folder, check=True)


class DatInfo(unittest.TestCase):

    def test_adapters(self):
        providers = document()["providers"]
        self.assertEqual([p["name"] for p in providers], ["mine", "gone"])
        self.assertEqual(providers[0]["served_by"], "Viaduct")
        self.assertEqual(providers[1]["served_by"], "/nonexistent/lib.so")
        self.assertEqual(providers[1]["from"], "dat.conf line 3")
        text = run().stdout
        self.assertRegex(text, r"(?m)^  mine +u2\.0  nonthreadsafe +Viaduct \"lo\" \(dat\.conf line 2\)$")

    def test_attributes(self):
        done = run("--json", "mine")
        self.assertEqual(done.returncode, 0, done.stderr)
        adapter = json.loads(done.stdout)["adapters"][0]
        self.assertEqual(adapter["vendor"], "Viaduct")
        self.assertEqual(adapter["adapter"]["address"], "127.0.0.1")
        self.assertGreaterEqual(adapter["adapter"]["max_message_size"], 16 << 20)
        self.assertGreaterEqual(adapter["provider"]["max_private_data_size"], 64)
        self.assertIs(adapter["adapter"]["zb_supported"], True)
        self.assertIs(adapter["provider"]["srq_supported"], True)
        self.assertGreater(adapter["adapter"]["max_srqs"], 1 << 20)
        self.assertEqual(adapter["provider"]["rmr_scope_supported"], "endpoint or protection zone")
        self.assertEqual(adapter["provider"]["provider_attributes"]["max_recv_iov_per_srq"], "64")
        self.assertEqual([t["name"] for t in adapter["transports"]], ["shared memory", "iWARP over TCP"])
        self.assertEqual([t["name"] for t in document("mine", VIADUCT_WIRE="iwarp")["adapters"][0]["transports"]],
                         ["iWARP over TCP"])
        self.assertEqual([t["name"] for t in document("mine", VIADUCT_WIRE="shm")["adapters"][0]["transports"]],
                         ["shared memory"])
        self.assertEqual((adapter["device"], adapter["reason"]), ("soft", "no RDMA device is used; wires: shm, iwarp"))
        text = run("mine").stdout
        self.assertIn("max_message_size", text)
        self.assertRegex(text, r"(?m)^  device +soft$")
        self.assertEqual(adapter["counters"], {"DCNT_IA_EVD_CREATE": 1})

    def test_adapter_that_cannot_be_opened(self):
        unknown = "DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED"
        opaque = unknown + ": the registry has it, but it cannot be opened; a warning in the log says why"
        for name, error, why in (("gone", opaque, "/nonexistent/lib.so"), ("away", opaque, "no-such-if"),
                                 ("unknown", unknown, None)):
            with self.subTest(name):
                done = run("--json", name, conf=_CONF + _AWAY)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(json.loads(done.stdout)["adapters"][0]["error"], error)
                if why is None:
                    self.assertEqual(done.stderr, "")
                else:
                    self.assertIn(why, done.stderr)
                self.assertRegex(run(name, conf=_CONF + _AWAY).stdout, r"(?m)^  error +%s$" % error)

    def test_settings(self):
        settings = {s["name"]: s for s in document("-e", VIADUCT_WIRE="shm")["settings"]}
        self.assertEqual(settings["VIADUCT_WIRE"]["value"], "shm")
        self.assertEqual(settings["VIADUCT_WIRE"]["default"], "auto")
        self.assertIn("VIADUCT_WIRE=auto", run("-e").stdout)
        self.assertTrue(all(s["help"] for s in settings.values()))

    def checks(self, *arguments, **keywords):
        found = {}
        for check in document("--check", *arguments, **keywords)["checks"]:
            found.setdefault(check["check"], []).append(check)
        return found

    def test_every_check_is_there_and_trouble_has_a_cure(self):
        found = self.checks()
        self.assertEqual(set(found), {"memlock", "yama", "rdma", "dat.conf", "descriptors", "environment"})
        for checks in found.values():
            for check in checks:
                self.assertIn(check["state"], {"ok", "warning", "failed"})
                self.assertEqual("cure" in check, check["state"] != "ok", check)

    def test_dat_conf(self):
        (check,) = self.checks()["dat.conf"]
        self.assertEqual(check["state"], "warning")
        self.assertIn("/nonexistent/lib.so", check["finding"])
        self.assertIn("libdapl-viaduct.so.2", check["cure"])
        done = run("--check", conf="mine u2.0\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^failed   dat\.conf .* line 1: an entry has 8 words")
        for override in ("/nonexistent/dat.conf", "/", "/dev/null"):
            done = run("--check", DAT_OVERRIDE=override)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no adapter at all", done.stdout)

    @unittest.skipUnless(_MAY_MOUNT, "no mount namespace of its own")
    def test_dat_conf_of_the_system(self):
        remove = "dat.conf(5) says what file it is; without it soft0 is built in"
        for kind, state, finding, cure in (
                ("nothing", "ok", "No such file or directory; soft0 is built in", None),
                ("text", "ok", " has 0 entries for user programs", None),
                ("secret", "failed", "Permission denied; only the built-in adapters can be opened", "chmod a+r /etc/dat.conf"),
                ("folder", "failed", "Is a directory; only the built-in adapters can be opened", remove),
                ("link", "failed", "Too many levels of symbolic links; only the built-in adapters can be opened", remove)):
            with self.subTest(kind):
                environment = {name: value for name, value in os.environ.items() if not name.startswith("DAT_")}
                done = subprocess.run([*_OWN_MOUNTS, "sh", "-c", _OTHER_ETC, "", kind, _PROGRAM, "--json", "--check"],
                                      stdout=subprocess.PIPE, text=True, env=environment, check=False)
                check, = [each for each in json.loads(done.stdout)["checks"] if each["check"] == "dat.conf"]
                self.assertEqual((check["state"], done.returncode), (state, 0 if state == "ok" else 1))
                self.assertIn(finding, check["finding"])
                self.assertEqual(check.get("cure"), cure)

    def test_what_an_entry_could_say_would_work(self):
        conf = 'ofa-v2-mcm-1 u2.0 nonthreadsafe default /nonexistent/lib.so dapl.2.0 "mlx4_0 1" ""\n'
        (check,) = self.checks(conf=conf)["dat.conf"]
        line = check["cure"].partition("or write: ")[2]
        self.assertEqual(run("--check", conf=conf).stderr, "")
        self.assertEqual(run("ofa-v2-mcm-1", conf=line + "\n").returncode, 0)
        (check,) = self.checks(conf=line + "\n")["dat.conf"]
        self.assertEqual(check["state"], "ok", check)

    def test_misspelt_variable(self):
        (check,) = self.checks(VIADUCT_WIER="shm")["environment"]
        self.assertEqual(check["state"], "warning")
        self.assertIn("VIADUCT_WIRE", check["finding"])

    def test_misspelt_variable_is_named_where_its_adapter_is_not_found(self):
        for adapters in (("unknown",), ("mine", "mine")):
            with self.subTest(adapters):
                self.assertEqual(run(*adapters, DAT_OVERIDE="my.conf").stderr,
                                 "viaduct: warn: DAT_OVERIDE: no such setting (DAT_OVERRIDE is one)\n")

    def test_program(self):
        (check,) = self.checks(_PROGRAM)["program"]
        self.assertEqual(check["state"], "ok", check)
        self.assertIn("libdat2.so.2", check["finding"])
        for other in ("/bin/sh", "/sbin/ldconfig"):  # the latter is static
            (check,) = self.checks(other)["program"]
            self.assertEqual(check["state"], "warning", check)
            self.assertIn(" is not linked with libdat", check["finding"])
        fifo = tempfile.mkdtemp() + "/fifo"
        os.mkfifo(fifo)
        self.addCleanup(shutil.rmtree, os.path.dirname(fifo))
        for path, finding in ((__file__, " is no 64-bit program of this machine"), ("/", " is no 64-bit program of this machine"),
                              (fifo, " is no 64-bit program of this machine"), ("/dev/zero", " is no 64-bit program of this machine"),
                              ("/nonexistent", ": No such file or directory"), (__file__ + "/x", ": Not a directory")):
            (check,) = self.checks(path)["program"]
            self.assertEqual((check["state"], check["finding"]), ("failed", path + finding))

    def check_program(self, path, **keywords):
        (check,) = self.checks(path, **keywords)["program"]
        return check["state"], check["finding"]

    def test_program_by_its_bare_name(self):
        old = OldProgram(self)
        self.assertEqual(self.check_program("old", cwd=old.folder), ("failed", "old needs libdat.so.1, which is not found"))
        self.assertEqual(self.check_program("old", cwd=old.folder, LD_LIBRARY_PATH=old.libraries),
                         ("ok", "old loads %s/libdat.so.1, which is Viaduct's" % old.libraries))

    def test_program_of_another_vendors_vipl(self):
        old = OldProgram(self)
        old._make("-shared", "-Wl,-soname,libgnivipl.so", "-o", old.libraries + "/libgnivipl.so", "dat.c")
        old._make("-o", "giganet", "old.c", old.libraries + "/libgnivipl.so")
        self.assertEqual(self.check_program("giganet", cwd=old.folder),
                         ("failed", "giganet needs libgnivipl.so, which is not found"))

    def test_program_where_nobody_waits_for_children(self):
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            done = subprocess.Popen([_PROGRAM, "--check", "/bin/sh"], stdout=subprocess.PIPE, text=True)
        finally:
            signal.signal(signal.SIGCHLD, before)
        self.assertIn("warning  program      /bin/sh is not linked with libdat", done.communicate()[0])

    def test_program_whose_path_cannot_be_overruled(self):
        old = OldProgram(self)
        os.mkdir(old.folder + "/other")
        old._make("-shared", "-Wl,-soname,libdat.so.1", "-o", "other/libdat.so.1", "dat.c")
        old._make("-Wl,--disable-new-dtags,-rpath,$ORIGIN/other", "-o", "old", "old.c", "other/libdat.so.1")
        (check,) = self.checks("old", cwd=old.folder, LD_LIBRARY_PATH=old.libraries)["program"]
        self.assertEqual((check["state"], check["finding"]), (
            "warning", "old loads %s/other/libdat.so.1, which is not Viaduct's; its DT_RPATH $ORIGIN/other comes before "
            "LD_LIBRARY_PATH" % old.folder))
        self.assertEqual(check["cure"], "chrpath -d, patchelf --remove-rpath, or LD_PRELOAD")

    def test_program_for_which_ours_is_preloaded(self):
        path = self.check_program(_PROGRAM)[1].split(" loads ")[1].split(",")[0]
        old = OldProgram(self)
        old._make("-shared", "-Wl,-soname,libdat2.so.2", "-o", "libdat2.so.2", "dat.c")
        old._make("-Wl,--disable-new-dtags,-rpath,$ORIGIN", "-o", "old", "old.c", "libdat2.so.2")
        self.assertEqual(self.check_program("old", cwd=old.folder)[0], "warning")
        # ASan's library wants to be the first, and datinfo has the preloaded one before it.
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.assertEqual(self.check_program("old", cwd=old.folder, LD_PRELOAD=path, ASAN_OPTIONS=options),
                         ("ok", "old loads %s, which is Viaduct's" % path))

    def test_program_that_names_a_library_by_its_path(self):
        old = OldProgram(self)
        library = old.folder + "/libdat.so"
        old._make("-shared", "-o", library, "dat.c")
        old._make("-Wl,--disable-new-dtags,-rpath,$ORIGIN", "-o", "old", "old.c", library)
        (check,) = self.checks("old", cwd=old.folder)["program"]
        self.assertEqual((check["state"], check["finding"], check["cure"]), (
            "warning", "old loads %s, which is not Viaduct's; it is named by its path" % library, "LD_PRELOAD"))
        os.remove(library)
        self.assertEqual(self.check_program("old", cwd=old.folder), ("failed", "old needs %s, which is not found" % library))
        os.symlink(old.libraries + "/libdat.so.1", library)
        os.symlink(old.libraries + "/engine", old.folder + "/engine")
        self.assertEqual(self.check_program("old", cwd=old.folder), ("ok", "old loads %s, which is Viaduct's" % library))

    def test_few_descriptors(self):
        for soft, hard, state, cure in ((64, 4096, "warning", "ulimit -n 4096"), (4096, 4096, "ok", None),
                                        (64, 1024, "warning",
                                         'the hard limit is 1024: "* - nofile 4096" in /etc/security/limits.d')):
            limits = "--nofile=%d:%d" % (soft, hard)
            done = subprocess.run(["prlimit", limits, _PROGRAM, "--json", "--check"], stdout=subprocess.PIPE, text=True, check=False)
            check, = [each for each in json.loads(done.stdout)["checks"] if each["check"] == "descriptors"]
            self.assertEqual((check["state"], check["finding"].split(";")[0], check.get("cure")),
                             (state, "RLIMIT_NOFILE is %d" % soft, cure))

    def test_program_by_a_link(self):
        old = OldProgram(self)
        os.symlink(old.libraries, old.folder + "/beside")
        os.symlink("../old", old.libraries + "/link")
        path = old.libraries + "/link"
        self.assertEqual(self.check_program(path), ("ok", "%s loads %s/beside/libdat.so.1, which is Viaduct's" % (path, old.folder)))

    def test_program_whose_library_needs_ours(self):
        old = OldProgram(self)
        old._make("-shared", "-Wl,-soname,libmiddle.so", "-o", "libmiddle.so", "old.c", old.libraries + "/libdat.so.1")
        old._write("outer.c", "int main(void) { return 0; }\n")
        old._make("-Wl,--no-as-needed,--allow-shlib-undefined,-rpath,$ORIGIN", "-o", "outer", "outer.c", "./libmiddle.so")
        self.assertEqual(self.check_program("outer", cwd=old.folder, LD_LIBRARY_PATH=old.libraries),
                         ("ok", "outer loads %s/libdat.so.1, which is Viaduct's" % old.libraries))

    def test_program_that_the_loader_cannot_list(self):
        old = OldProgram(self)
        library = old.libraries + "/libdat.so.1"
        os.truncate(library, 0)
        state, finding = self.check_program("old", cwd=old.folder, LD_LIBRARY_PATH=old.libraries)
        self.assertEqual(state, "failed")
        self.assertRegex(finding, r"\Athe loader cannot list what old loads: .*%s: file too short\Z" % library)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for arguments in ((), ("--json",), ("-e",), ("-e", "--json"), ("--help",), ("--version",)):
            with self.subTest(arguments), open("/dev/full", "w", encoding="utf-8") as full:
                done = run(*arguments, stdout=full)
                self.assertEqual((done.returncode, done.stderr), (1, "datinfo: standard output cannot be written\n"))

    def test_usage(self):
        for option in "-h", "--help":
            done = run(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("usage: datinfo"))
        for option in "-V", "--version":
            done = run(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"\Adatinfo \d+\.\d+\.\d+\n\Z")
        self.assertEqual(run("--nonsense").returncode, 2)
        self.assertEqual(run("--check", "a", "b").returncode, 2)
        self.assertEqual(run("--check", "").returncode, 2)

    def test_manual_page_names_every_option(self):
        with open("tools/datinfo/datinfo.1", encoding="utf-8") as page:
            text = page.read().replace("\\-", "-")
        for option in re.findall(r"(?<!\S)-+\w+", run("--help").stdout):
            self.assertIn(option, text)


if __name__ == "__main__":
    python_main.main()
