#!/usr/bin/env python3
"""What the engine and its faces cost above bare calls of libibverbs, over a mock of it.

System calls and allocations are exact: none in posts and polls. Instructions may be a quarter above those in README.md, so
that a change that makes a message dearer fails here and a change of the compiler does not. They mean something only in an
optimized build (--config=opt, which says so in VIADUCT_OPTIMIZED; a stage of .ci/run).
"""

import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import unittest

from tools.build_rules import python_main

_LOADER = importlib.machinery.SourceFileLoader("instructions", "tests/hotpath/instructions")
_SPEC = importlib.util.spec_from_loader("instructions", _LOADER)
instructions = importlib.util.module_from_spec(_SPEC)
_LOADER.exec_module(instructions)

_FOLDER = "tests/hotpath"
_ROWS = {"device": "`verbs/rdma` alone", "vipl": "VIPL", "dat1": "uDAPL 1.2", "dat2": "uDAPL 2.0"}


def prices():
    """{script: instructions of one message above the bare calls}, from README.md."""
    with open(_FOLDER + "/README.md", encoding="utf-8") as readme:
        text = readme.read()
    return {script: int(re.search(r"(?m)^\| %s \|.*\| (\d+) \|$" % re.escape(row), text).group(1)) for script, row in _ROWS.items()}


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

    @unittest.skipIf("VIADUCT_OPTIMIZED" not in os.environ, "counts of a build without optimization mean nothing")
    @unittest.skipIf(shutil.which("valgrind") is None, "valgrind is not installed")
    def test_instructions(self):
        bounds = {"bare": 0, **{script: 1.25 * price for script, price in prices().items()}}
        bare = None
        for script, counts in instructions.measure("rdma", _FOLDER, 200):
            bare = bare or counts["Measured"]
            with self.subTest(script):
                self.assertLessEqual(counts["Measured"] - bare, bounds[script])


if __name__ == "__main__":
    python_main.main()
