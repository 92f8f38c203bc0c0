#!/usr/bin/env python3
"""A face's conformance tests over siw and rxe. The exceptions that verbs/README.md lists must fail."""

import glob
import os
import re
import subprocess
import unittest

from tests.lab import lab, one_by_one

# dat12, dat20 or vipl.
_FACE = os.environ.get("LAB_FACE", "vipl")
_PROGRAMS = "tests/conformance/vipl/*_iwarp_test" if _FACE == "vipl" else "tests/conformance/dat/%s_iwarp_test" % _FACE

_EXCEPTION = re.compile(r"\| (dat|vipl) \| [^|]+ \| `([\w/]+\.[\w/]+)` \| ([a-z0-9., ]+) \| (.+) \|$")

# The tests that have nothing to check over a device, and skip with a reason. No other test may skip.
_SKIPS = {
    "dat12": {
        "CrReject.S_BadPrivateDataLeavesTheRequest",
        "EpConnect.S_APeerIsToldTheDepthOfReads",
        "Ipv6.S_ConnectAndQuery",
        "LmrSync.C039_LongSegments",
    },
    "dat20": {"EpConnect.S_APeerIsToldTheDepthOfReads", "Ipv6.S_ConnectAndQuery"},
    "vipl": {
        "Damage.AStrangerWhoLeavesInsideAWrite",
        "Damage.CorruptWrites",
        "VipConnectRequest.C04_ThePeerSawTheHostOfTheRequester",
        "VipConnectRequest.C14_C15_APartitionSendsReliableVisToErrorAndFlushes",
    },
}

# A test that must pass has much time, one that must fail has little: slowness, seconds, attempts.
_PASSES, _FAILS = (4, 400, 2), (1, 60, 1)


def exceptions(driver, table):
    """Maps the tests that are exceptions for this face over that driver to their reasons."""
    face = _FACE.rstrip("0123456789")
    rows = [_EXCEPTION.match(line.strip()) for line in table]
    return {row.group(2): row.group(4) for row in rows
            if row and row.group(1) == face and one_by_one.concerns(row.group(3), driver)}


def tests_of(program):
    """The names of a program's tests."""
    listing = subprocess.run([program, "--wire=rdma", "--gtest_list_tests"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             check=True).stdout.decode()
    suite, names = "", []
    for line in filter(None, listing.splitlines()):
        word = line.split()[0]
        if line.startswith(" "):
            names.append(suite + word)
        else:
            suite = word
    return names


class Conformance(unittest.TestCase):
    def _run(self, driver):
        with open("verbs/README.md", encoding="utf-8") as table:
            left_out = exceptions(driver, table)
        tries = []
        for program in sorted(glob.glob(_PROGRAMS)):
            program = os.path.realpath(program)
            for test in tests_of(program):
                tries.append(one_by_one.conformance(program, test, *(_FAILS if test in left_out else _PASSES)))
        self.assertTrue(tries)
        answers = one_by_one.run(self, driver, tries, seconds=3500)
        wrong = one_by_one.complaints(tries, answers, left_out, _SKIPS[_FACE])
        if _FACE != "dat12":  # 2.0 has all tests that 1.2 has
            no_tests = set(left_out) - {each.test for each in tries}
            wrong += ["%s is an exception and no test" % test for test in sorted(no_tests)]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_siw(self):
        self._run("siw")

    def test_rxe(self):
        self._run("rxe")


if __name__ == "__main__":
    lab.main()
