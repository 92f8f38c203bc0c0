#!/usr/bin/env python3
"""Every number of the DAT checklist is in the name of a test.

Those of this folder run for both versions over both wires; the headers, libraries, dat.conf and foreign providers have theirs elsewhere.
"""

import glob
import re
import unittest

_NUMBERS = range(1, 137)
_SOURCES = (
    "tests/conformance/dat/*_test.cc",
    "tests/abi/dat*_abi_test.cc",
    "tests/providers/providers_test.cc",
    "dat/api/libraries_test.py",
    "dat/registry/*_test.cc",
)


def tests():
    for pattern in _SOURCES:
        for path in sorted(glob.glob(pattern)):
            with open(path, encoding="utf-8") as source:
                for name in re.findall(r"^\s*(?:TEST\w*\(\w+,\s*|def test_)(\w+)", source.read(), re.M):
                    yield path, name


class Checklist(unittest.TestCase):

    def test_every_source_is_here(self):
        found = {path for path, _ in tests()}
        for pattern in _SOURCES:
            self.assertTrue(found & set(glob.glob(pattern)), pattern)

    def test_every_number_has_a_test(self):
        named = set()
        for path, name in tests():
            numbers = [int(number) for number in re.findall(r"C(\d{3})_", re.match(r"(?:C\d{3}_)*", name).group())]
            self.assertTrue(set(numbers) <= set(_NUMBERS), "%s: %s" % (path, name))
            named.update(numbers)
        self.assertEqual([number for number in _NUMBERS if number not in named], [])


if __name__ == "__main__":
    unittest.main()
