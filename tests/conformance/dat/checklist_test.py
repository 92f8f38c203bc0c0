#!/usr/bin/env python3
"""Every number of the DAT checklist is in the name of a test.

The tests of this folder run for both versions over both wires; those of headers, libraries, dat.conf and foreign providers are
elsewhere.
"""

import glob
import re
import unittest

_NUMBERS = range(1, 137)
_SOURCES = (
    "tests/conformance/dat/*_test.cc",
    "tests/abi/dat*_abi_test.cc",
    "tests/providers/*_test.cc",
    "dat/api/libraries_test.py",
    "dat/registry/*_test.cc",
)


_VERSIONS = ("12", "20")
# The numbers of only one version: its own header and library, and the operation in an event.
_OF_ONE_VERSION = {1: "20", 2: "12", 3: "20", 4: "12", 127: "20"}


def tests():
    """(path, name, versions it is compiled for) of each test."""
    for pattern in _SOURCES:
        for path in sorted(glob.glob(pattern)):
            with open(path, encoding="utf-8") as source:
                for name, versions in tests_of(source.read()):
                    yield path, name, versions


def tests_of(text):
    """(name, versions) of each test in a source; conditions on the version do not nest."""
    versions = _VERSIONS
    for line in re.sub(r"\(\w+,\n\s*", "(_, ", text).splitlines():
        condition = re.match(r"#if VIADUCT_TEST_DAT == (\d+)", line)
        test = re.match(r"\s*(?:TEST\w*\(\w+,\s*|def test_)(\w+)", line)
        if condition:
            versions = (condition.group(1),)
        elif line.startswith("#else") and len(versions) == 1:
            versions = tuple(version for version in _VERSIONS if version not in versions)
        elif line.startswith("#endif"):
            versions = _VERSIONS
        elif test:
            yield test.group(1), versions


def numbers_of(name):
    return [int(number) for number in re.findall(r"C(\d{3})_", re.match(r"(?:C\d{3}_)*", name).group())]


class Checklist(unittest.TestCase):

    def test_every_source_is_here(self):
        found = {path for path, _, _ in tests()}
        for pattern in _SOURCES:
            self.assertTrue(found & set(glob.glob(pattern)), pattern)

    def test_every_number_has_a_test_of_each_version(self):
        named = {version: set() for version in _VERSIONS}
        for path, name, versions in tests():
            self.assertTrue(set(numbers_of(name)) <= set(_NUMBERS), "%s: %s" % (path, name))
            for version in versions:
                named[version].update(numbers_of(name))
        for version in _VERSIONS:
            wanted = [number for number in _NUMBERS if _OF_ONE_VERSION.get(number, version) == version]
            self.assertEqual([number for number in wanted if number not in named[version]], [], version)

    def test_conditions_are_read(self):
        text = "TEST(A, X) {\n#if VIADUCT_TEST_DAT == 12\nTEST(A,\n     Y) {\n#else\nTEST(A, Z) {\n#endif\nTEST(A, W) {\n"
        self.assertEqual(list(tests_of(text)), [("X", _VERSIONS), ("Y", ("12",)), ("Z", ("20",)), ("W", _VERSIONS)])


if __name__ == "__main__":
    unittest.main()
