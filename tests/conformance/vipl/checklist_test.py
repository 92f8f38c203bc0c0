#!/usr/bin/env python3
"""The checklist in vipl/README.md names the tests that have its numbers in their names, and all of them.

With --update it is written anew.
"""

import glob
import re
import sys
import unittest

from tests.conformance.sim import over_sim

_README = "vipl/README.md"
_NUMBERS = range(1, 96)
_ROW = r"^\| C\d+ \|.*\n"


def _sources():
    return sorted(glob.glob("tests/conformance/vipl/*_test.cc"))


def rows():
    """The table's rows, as they follow from the names of the tests."""
    tests = {number: [] for number in _NUMBERS}
    simulated = over_sim.chosen(_sources())
    for path in _sources():
        with open(path, encoding="utf-8") as source:
            text = source.read()
        for suite, name in re.findall(r"^TEST\((\w+),\s*(\w+)\)", text, re.M):
            for number in re.findall(r"C(\d+)_", re.match(r"(?:C\d+_)*", name).group()):
                tests[int(number)].append(("%s.%s" % (suite, name), "`%s`" % path.rpartition("/")[2]))
    for number in _NUMBERS:
        names = [name for name, _ in tests[number]]
        files = ", ".join(sorted({file for _, file in tests[number]}))
        here = [name in simulated for name in names]
        sim = "yes" if names and all(here) else "in part" if any(here) else "-"
        yield "| C%d | %s | %s | %s |\n" % (number, ", ".join("`%s`" % name for name in names) or "not yet", files, sim)


class Checklist(unittest.TestCase):

    maxDiff = None

    def test_list_and_tests_agree(self):
        with open(_README, encoding="utf-8") as readme:
            listed = re.findall(_ROW, readme.read(), re.M)
        self.assertEqual(listed, list(rows()), "write it anew: tests/conformance/vipl/checklist_test.py --update")

    def test_chapters_over_sim(self):
        with open("tests/conformance/vipl/BUILD", encoding="utf-8") as build:
            chapters = re.findall(r'name = "(\w+)",\n    sim = True', build.read())
        wanted = [re.search(r"(\w+)_test.cc", path).group(1) for path in _sources() if over_sim.chosen([path])]
        self.assertEqual(sorted(chapters), wanted, "with sim = True where a test needs no peer")


def update():
    with open(_README, encoding="utf-8") as readme:
        before, after = re.split("(?:%s)+" % _ROW, readme.read(), maxsplit=1, flags=re.M)
    with open(_README, "w", encoding="utf-8") as readme:
        readme.write(before + "".join(rows()) + after)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
