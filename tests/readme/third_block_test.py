#!/usr/bin/env python3
"""README.md's third block and its two programs, run as a newcomer runs them: install, compile, run, remove.

Only Bazel is a stand-in: the libraries are this test's own data, and the newcomer's home is a temporary folder.
"""

import os
import socket
import subprocess
import tempfile
import unittest

from tests.layering import tree
from tests.readme import readme
from tools.build_rules import python_main

_DOOR = 8000

_BAZEL = """#!/bin/sh
case $1 in
  build) exit 0 ;;
  info) echo "%s" ;;
esac
"""


class ThirdBlock(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._home = folder.name
        self._environment = {"HOME": self._home, "PATH": os.environ["PATH"], "VIADUCT_BAZEL": self._home + "/bazel"}
        os.symlink(tree.root() + "/tools", self._home + "/tools")
        self._write("bazel", _BAZEL % os.getcwd())
        os.chmod(self._home + "/bazel", 0o755)
        for name, text in readme.programs().items():
            self._write(name, text)
        self._write("old.c", readme.programs()["knock_via.c"])
        plain, self._with_pkg_config = readme.blocks("sh")
        install, self._with_plain_flags = plain.splitlines()
        self._run_shell(install)

    def _write(self, name, text):
        with open(os.path.join(self._home, name), "w", encoding="utf-8") as out:
            out.write(text)

    def _run_shell(self, script):
        result = subprocess.run(["sh", "-euc", script], cwd=self._home, env=self._environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(result.returncode, 0, "%s\n%s" % (script, result.stdout))

    def _knock(self, program):
        """Runs the program, which needs no environment at all. Skips if somebody listens at README.md's port."""
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                door.bind(("", _DOOR))
            except OSError as error:
                self.skipTest("port %d of this machine: %s" % (_DOOR, error.strerror))
        result = subprocess.run([os.path.join(self._home, program)], env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        self.assertEqual((result.returncode, result.stdout), (0, "nobody waits\n"))

    def test_old_program_with_plain_flags(self):
        self._run_shell(self._with_plain_flags)
        self._knock("old")

    def test_old_program_with_pkg_config(self):
        self._run_shell(self._with_pkg_config)
        self._knock("old")

    def test_dat_twin(self):
        self._run_shell("export PKG_CONFIG_PATH=~/viaduct/lib/pkgconfig; "
                        "cc knock_dat.c $(pkg-config --cflags --libs dat2) -o knock_dat")
        self._knock("knock_dat")

    def test_remove(self):
        self._run_shell("tools/install --remove ~/viaduct")
        self.assertFalse(os.path.exists(self._home + "/viaduct"))


if __name__ == "__main__":
    python_main.main()
