#!/usr/bin/env python3
"""Runs tools/demo in a small copy of the repository; Bazel and setup are stand-ins, the programs are this test's own data."""

import os
import shutil
import subprocess
import tempfile
import unittest

_STAND_IN = """#!/bin/sh
echo "${0##*/} $*" >>"$LOG"
"""
# A fetch that spoils the beginning of what it has fetched.
_SPOILER = """#!/bin/sh
"%s" "$@" || exit
while [ "$1" != -o ]; do shift; done
printf x | dd of="$2/$5" conv=notrunc status=none
"""
# An unshare that makes one namespace and no other.
_ONCE = """#!/bin/sh
mkdir "$XDG_CACHE_HOME/one" 2>/dev/null || { echo no more of them >&2; exit 1; }
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""


class Demo(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._here = folder.name
        for name in ("tools", "temporary", "bin"):
            os.mkdir(os.path.join(self._here, name))
        for name in ("common.sh", "demo", "packages"):
            shutil.copy("tools/" + name, self._here + "/tools")
        self._write("tools/setup", _STAND_IN)
        self._write("bazel", _STAND_IN + 'case $1 in info) echo "%s/built" ;; esac\n' % self._here)
        for program in ("vipl/examples/filed", "vipl/examples/fetch", "dat/examples/dfiled"):
            built = os.path.join(self._here, "built", program)
            os.makedirs(os.path.dirname(built), exist_ok=True)
            os.symlink(os.path.abspath(program), built)
        self._write("zeros", "\0" * 1000000)

    def _write(self, path, text):
        path = os.path.join(self._here, path)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o755)

    def _begin(self, *arguments):
        environment = dict(os.environ, PATH=self._here + "/bin:" + os.environ["PATH"], VIADUCT_BAZEL=self._here + "/bazel", LOG=self._here + "/log",
                           XDG_CACHE_HOME=self._here + "/cache", TMPDIR=self._here + "/temporary")
        return subprocess.Popen([self._here + "/tools/demo", *arguments], env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def _demo(self, *arguments):
        demo = self._begin(*arguments)
        output, _ = demo.communicate(timeout=120)
        self.assertEqual(os.listdir(self._here + "/temporary"), [])
        return demo.returncode, output

    def _calls(self):
        if not os.path.exists(self._here + "/log"):
            return []
        with open(self._here + "/log", encoding="utf-8") as log:
            return log.read().splitlines()

    def _legs(self, output, end):
        """The letters of the legs whose line ends with `end`."""
        return [line[1] for line in output.splitlines() if line.startswith("(") and line.endswith(end)]

    def test_each_leg_moves_the_file(self):
        code, output = self._demo(self._here + "/zeros")
        self.assertEqual(code, 0, output)
        self.assertEqual(self._legs(output, "  SHA-256 ok"), ["a", "b", "c"], output)
        self.assertNotIn("without network namespaces: \n", output)  # nothing has refused them
        setup, build, _ = self._calls()
        self.assertEqual(setup, "setup build")
        self.assertTrue(build.endswith(" //vipl/examples:filed //vipl/examples:fetch //dat/examples:dfiled"), build)

    def test_second_host_may_be_refused(self):
        self._write("bin/unshare", _ONCE)
        self._write("bin/nsenter", "#!/bin/sh\nexit 1\n")
        code, output = self._demo(self._here + "/zeros")
        self.assertEqual((code, self._legs(output, "  SHA-256 ok")), (0, ["a", "b", "c"]), output)
        self.assertIn("(b) runs over loopback, without network namespaces: no more of them\n", output)

    def test_leaves_nothing_where_nobody_reads_any_more(self):
        demo = self._begin(self._here + "/zeros")
        self.assertTrue(demo.stdout.readline().startswith("File: "))
        demo.stdout.close()
        self.assertEqual(demo.wait(timeout=60), 141)
        self.assertEqual(os.listdir(self._here + "/temporary"), [])

    def test_a_link_leads_to_its_file(self):
        for name in ("here", "elsewhere"):
            os.mkdir(os.path.join(self._here, name))
        os.rename(self._here + "/zeros", self._here + "/elsewhere/-zeros")
        os.symlink("../elsewhere/-zeros", self._here + "/here/link")
        code, output = self._demo(self._here + "/here/link")
        self.assertEqual((code, self._legs(output, "  SHA-256 ok")), (0, ["a", "b", "c"]), output)

    def test_leg_that_brings_another_file_is_a_failure(self):
        fetch = self._here + "/built/vipl/examples/fetch"
        real = os.readlink(fetch)
        os.unlink(fetch)
        self._write(fetch, _SPOILER % real)
        code, output = self._demo(self._here + "/zeros")
        self.assertEqual((code, self._legs(output, " FAILED: another SHA-256")), (1, ["a", "b", "c"]), output)

    def test_looks_at_its_file_first(self):
        code, output = self._demo(self._here + "/none")
        self.assertEqual((code, output), (1, "tools/demo: %s/none: not a file that can be read\n" % self._here))
        self.assertEqual(self._calls(), [])

    def test_help_does_nothing(self):
        code, output = self._demo("--help")
        self.assertEqual(code, 0, output)
        self.assertTrue(output.startswith("Usage: tools/demo [FILE]\n"), output)
        self.assertEqual(self._calls(), [])


if __name__ == "__main__":
    unittest.main()
