#!/usr/bin/env python3
"""What the engine and its faces cost above bare calls of libibverbs, over a mock of it.

Exact: no system call and no allocation in posts and polls. Instructions: a bound far above what they are, so that a
change that doubles the price fails here and a change of the compiler does not.
"""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import unittest

from tools.build_rules import python_main

_LOADER = importlib.machinery.SourceFileLoader("instructions", "tests/hotpath/instructions")
_SPEC = importlib.util.spec_from_loader("instructions", _LOADER)
instructions = importlib.util.module_from_spec(_SPEC)
_LOADER.exec_module(instructions)

_FOLDER = "tests/hotpath"
# Of the bare calls and the mock under them; more: the build is not optimized.
_BARE = 900
# Above the bare calls, for one message: twice what README.md tells.
_BOUNDS = {"bare": 0, "device": 1100, "vipl": 3160, "dat1": 2460, "dat2": 2500}


class RdmaInstructionsTest(unittest.TestCase):
    def test_neither_system_calls_nor_allocations(self):
        for script in instructions.RDMA_SCRIPTS:
            with self.subTest(script):
                said = subprocess.run(["%s/rdma_%s_script" % (_FOLDER, script), "1000", "quiet"],
                                      env=instructions.environment_of("rdma", _FOLDER), stdout=subprocess.PIPE,
                                      check=True, timeout=60).stdout.decode()
                if "not counted" in said:
                    self.skipTest("no syscall user dispatch in this kernel")
                self.assertRegex(said, r"(?m)^0 system calls, 0 allocations\b")

    @unittest.skipIf(shutil.which("valgrind") is None, "valgrind is not installed")
    def test_instructions(self):
        bare = None
        for script, counts in instructions.measure("rdma", _FOLDER, 200):
            bare = bare or counts["Measured"]
            if bare > _BARE:
                self.skipTest("counts of a build without optimization mean nothing")
            with self.subTest(script):
                self.assertLessEqual(counts["Measured"] - bare, _BOUNDS[script])


if __name__ == "__main__":
    python_main.main()
