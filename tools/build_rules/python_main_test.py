#!/usr/bin/env python3
"""What count_tests makes of the reports that tests with python_main write."""

import os
import subprocess
import sys
import tempfile
import unittest

from tools import count_tests
from tools.build_rules import python_main

_PROGRAM = """import unittest
from tools.build_rules import python_main

class Suite(unittest.TestCase):
%s
if __name__ == "__main__":
    python_main.main()
"""
_PASS = """
    def test_a(self):
        with self.subTest("part"):
            pass
"""


class PythonMain(unittest.TestCase):

    def run_suite(self, body):
        """Runs a program with that suite; returns (exit status, what is counted)."""
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "test.xml")
            done = subprocess.run([sys.executable, "-"], input=_PROGRAM % body, env=dict(os.environ, XML_OUTPUT_FILE=report),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertIn("Ran ", done.stdout)
            count = count_tests.Count()
            count.add_result("//a:test", {"status": "FAILED" if done.returncode else "PASSED",
                                          "testActionOutput": [{"name": "test.xml", "uri": "file://" + report}]})
        return done.returncode, count

    def check(self, body, passed=0, failures=(), skips=()):
        status, count = self.run_suite(body)
        self.assertEqual((status != 0, count.passed, count.failures, sorted(count.skips)),
                         (bool(failures), passed, list(failures), sorted(skips)))

    def test_cases_that_pass(self):
        self.check(_PASS + "    test_b = test_a\n", passed=2)

    def test_case_that_is_skipped(self):
        self.check(_PASS + "    def test_b(self):\n        self.skipTest('no tshark <here>')\n", passed=1,
                   skips=["Suite.test_b: no tshark <here>"])

    def test_case_that_is_skipped_from_outside(self):
        self.check(_PASS + "    @unittest.skip('not today')\n    def test_b(self):\n        pass\n", passed=1,
                   skips=["Suite.test_b: not today"])

    def test_skip_of_a_part_is_one_of_the_case(self):
        self.check(_PASS.replace("pass", "self.skipTest('no part')"), skips=["Suite.test_a: no part"])

    def test_failure_outweighs_a_skip(self):
        self.check("""
    def test_a(self):
        for i in (1, 2, 1):
            with self.subTest("part"):
                self.assertEqual(i, 1)
                self.skipTest("no part")
""", failures=["//a:test: Suite.test_a"])

    def test_suite_that_is_skipped(self):
        self.check(_PASS + "    @classmethod\n    def setUpClass(cls):\n        raise unittest.SkipTest('no device')\n",
                   skips=["Suite.setUpClass: no device"])

    def test_failure_and_error(self):
        self.check(_PASS + "    def test_b(self):\n        self.fail()\n    def test_c(self):\n        return 1 / 0\n", passed=1,
                   failures=["//a:test: Suite.test_b", "//a:test: Suite.test_c"])

    def test_program_without_a_test_has_failed(self):
        self.assertNotEqual(self.run_suite("    pass\n")[0], 0)


if __name__ == "__main__":
    python_main.main()
