#!/usr/bin/env python3
"""The devices' suite over Linux's software RDMA drivers, but for the exceptions that verbs/rdma/README.md lists."""

import os
import re
import unittest

from tests.lab import lab

_SUITE = os.path.realpath("tests/device/rdma_suite")
_EXCEPTION = re.compile(r"\| `(\w+\.\w+)` \| ([a-z, ]+) \| (.+) \|$")

# rxe's own windows do not keep the peer within their bounds, its library takes the flag of an invalidation for
# another one, and its receiver calls one that is refused an error of its own.
_NOT_WITH_RXE_WINDOWS = {
    "WindowTest.ABoundWindowOpensItsRangeOnly",
    "WindowTest.ASendEndsTheWindowOfThePair",
    "WindowTest.OnlyAWindowOfThePairCanBeEnded",
    "WindowTest.AddressesMayCountFromZero",  # as the table has it
    "WindowTest.ARegionMayCountFromZeroTowardsBothSides",
}

# Each test in a process of its own: one that hangs costs its own time.
_SCRIPT = """
cd /tmp
for test in %(tests)s; do
  if %(settings)s timeout 100 %(suite)s --gtest_filter=$test >out 2>&1; then
    echo "passed $test"
  else
    echo "failed $test: $?"
    grep -A 12 Failure out | head -40
  fi
done
dmesg | grep -E 'BUG: (unable|kernel)|Oops' || true
"""


def exceptions(driver):
    """The tests that the table leaves out over that driver."""
    with open("verbs/rdma/README.md", encoding="utf-8") as table:
        rows = [_EXCEPTION.match(line.strip()) for line in table]
    return {row.group(1) for row in rows if row and driver in row.group(2).split(", ")}


def all_tests():
    """The names of the suite's tests, read from its chapters."""
    names = []
    for chapter in sorted(os.listdir("tests/device")):
        if chapter.endswith("_test.cc"):
            with open("tests/device/" + chapter, encoding="utf-8") as text:
                names += [".".join(pair) for pair in re.findall(r"^TEST_F\((\w+), (\w+)\)", text.read(), re.MULTILINE)]
    return names


class RdmaSuite(unittest.TestCase):
    def _run(self, driver, chosen, settings="", left_out=None):
        if left_out is None:
            left_out = exceptions(driver)
        tests = all_tests()
        self.assertEqual(left_out - set(tests), set(), "exceptions that name no test")
        tests = [test for test in tests if chosen(test) and test not in left_out]
        self.assertTrue(tests)
        status, output = lab.run(driver, _SCRIPT % {"tests": " ".join(tests), "suite": _SUITE, "settings": settings},
                                 seconds=1700)
        self.assertEqual(status, 0, output)
        self.assertNotRegex(output, "BUG:|Oops")
        failed = [line for line in output.splitlines() if line.startswith("failed ")]
        self.assertEqual(failed, [], output)
        self.assertEqual(output.count("passed "), len(tests), output)

    def test_siw(self):
        self._run("siw", lambda test: True)

    def test_siw_framed(self):
        """Every connection with immediate data."""
        chapters = ("DropTest", "OneSidedTest", "QueueTest", "SendTest")
        self._run("siw", lambda test: test.split(".")[0] in chapters, "RDMA_SUITE_FRAMED=1")

    def test_rxe_windows(self):
        """Windows that are the device's own."""
        self._run("rxe", lambda test: test.startswith("WindowTest."), "VIADUCT_WINDOWS=device", _NOT_WITH_RXE_WINDOWS)

    def test_rxe(self):
        self._run("rxe", lambda test: True)


if __name__ == "__main__":
    lab.main()
