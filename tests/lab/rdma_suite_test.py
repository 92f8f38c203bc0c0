#!/usr/bin/env python3
"""The devices' suite over Linux's software RDMA drivers. The exceptions that verbs/rdma/README.md lists must fail."""

import os
import re
import unittest

from tests.lab import lab, one_by_one

_SUITE = os.path.realpath("tests/device/rdma_suite")
_EXCEPTION = re.compile(r"\| `(\w+\.\w+)` \| ([a-z0-9., ]+) \| (.+) \|$")

# The tests that must fail over rxe's own windows.
_NOT_WITH_RXE_WINDOWS = {
    "WindowTest.ABoundWindowOpensItsRangeOnly": "they do not keep the peer within their bounds",
    "WindowTest.ASendEndsTheWindowOfThePair": "rxe's library takes the flag of an invalidation for another one",
    "WindowTest.OnlyAWindowOfThePairCanBeEnded": "the receiver calls one that is refused an error of its own",
    "WindowTest.AddressesMayCountFromZero": "as the table has it",
    "WindowTest.ARegionMayCountFromZeroTowardsBothSides": "as the table has it",
}

# The tests that have nothing to check over a device, and skip with a reason. No other test may skip.
_SKIPS = {"SendTest.SolicitedShowsAtThePeer"}
_SKIPPED_CHAPTER = "SharedReceiveLineTest."  # the order in which pairs wait for shared receives

# A test that must pass has much time, one that must fail has little: seconds, attempts.
_PASSES, _FAILS = (100, 2), (25, 1)


def exceptions(driver):
    """Maps the tests that must fail over that driver, according to the table, to their reasons."""
    with open("verbs/rdma/README.md", encoding="utf-8") as table:
        rows = [_EXCEPTION.match(line.strip()) for line in table]
    return {row.group(1): row.group(3) for row in rows if row and one_by_one.concerns(row.group(2), driver)}


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
        self.assertEqual(set(left_out) - set(tests), set(), "exceptions that name no test")
        tries = [one_by_one.Try(test, "env %s %s" % (settings, _SUITE), *(_FAILS if test in left_out else _PASSES))
                 for test in tests if chosen(test)]
        self.assertTrue(tries)
        answers = one_by_one.run(self, driver, tries, seconds=3500)
        skips = _SKIPS | {test for test in tests if test.startswith(_SKIPPED_CHAPTER)}
        wrong = one_by_one.complaints(tries, answers, left_out, skips)
        self.assertEqual(wrong, [], "\n".join(wrong))

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
