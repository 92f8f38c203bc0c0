#!/usr/bin/env python3
"""The table of functions agrees with the headers and exports of both versions; all pages can be made and formatted."""

import glob
import re
import unittest

from dat.man import make_pages
from tools.build_rules import python_main
from tools.manual import pages_checks

_VERSIONS = {"1.2": ("dat/include/dat", "dat/api/dat_12.map"), "2.0": ("dat/include/dat2", "dat/api/dat_20.map")}

# Exported functions that have no page yet.
_WITHOUT_PAGE = []


def _header_text(folder):
    text = ""
    for path in sorted(glob.glob(folder + "/*.h")):
        with open(path, encoding="utf-8") as header:
            text += header.read()
    return text


def _declarations(folder):
    """{function: signature as the table has it} of a version's headers."""
    found = {}
    for result, name, parameters in re.findall(r"extern (\w+) DAT_API\s+(\w+)\(([^;]*)\);", _header_text(folder)):
        parameters = re.sub(r"\b(IN|OUT)\b", "", parameters)
        parameters = [" ".join(each.split()) for each in parameters.split(",")]
        found[name] = "%s %s(%s)" % (result, name, ", ".join(parameters))
    return found


def _exports(path):
    with open(path, encoding="utf-8") as lines:
        return set(re.findall(r"^    (dats?_\w+);", lines.read(), re.M))


def _codes(folder):
    """The types of DAT_RETURN that a version knows."""
    with open(folder + "/dat_error.h", encoding="utf-8") as header:
        text = header.read()
    types = text[:text.index("} DAT_RETURN_TYPE;")]
    return set(re.findall(r"^\s+(DAT_\w+) = 0x", types[types.rindex("enum"):], re.M))


def _named_codes(folder):
    """{function: the codes that the comment before it names, also as "codes of" another} of a version's headers."""
    codes = _codes(folder)
    found = {}
    for comment, name in re.findall(r"/\*((?:[^*]|\*(?!/))*)\*/\nextern \w+ DAT_API\s+(\w+)\(", _header_text(folder)):
        comment = " ".join(comment.replace("\n *", " ").split())
        found[name] = {"DAT_" + word for word in re.findall(r"\b[A-Z_]+\b", comment)} & codes
        for other in re.findall(r"[Cc]odes (?:and events )?of (\w+)", comment):
            found[name] |= found[other]
    return found


class Pages(pages_checks.PagesChecks, unittest.TestCase):
    MANUAL = make_pages.MANUAL
    FOLDER = "dat/man"
    FUNCTION = r"\bdats?_(?:ia|ep|evd|cno|cr|csp|psp|rsp|pz|lmr|rmr|srq|registry|get|set|strerror|extension)_?\w+"
    OTHERS = {"datinfo.1", "datping.1", "dlopen.3", "epoll.7", "ibv_devices.1", "ldconfig.8", "viaduct-settings.7", "viaduct.7"} | {name + ".3" for name in _WITHOUT_PAGE}
    NAMES = frozenset(_WITHOUT_PAGE)

    def test_functions_are_those_of_the_headers(self):
        for version, (folder, _) in _VERSIONS.items():
            table = {}
            for name, function in self.functions.items():
                parameters = function.in_version(version)
                if parameters is not None:
                    table[name] = "%s %s(%s)" % (function.result, name, ", ".join(parameters))
            declared = {name: form for name, form in _declarations(folder).items() if name not in _WITHOUT_PAGE}
            with self.subTest(version):
                self.assertEqual(table, declared)

    def test_macros_are_those_of_the_headers(self):
        for folder, _ in _VERSIONS.values():
            defined = set(re.findall(r"^#define (\w+)\(", _header_text(folder), re.M))
            for name, function in self.functions.items():
                if function.forms[0][0] == "macro":
                    self.assertIn(name, defined)

    def test_every_export_has_a_page(self):
        exports = set().union(*(_exports(path) for _, path in _VERSIONS.values()))
        self.assertGreater(len(exports), 80)
        functions = {name for name, function in self.functions.items() if function.forms[0][0] != "macro"}
        self.assertEqual(exports - functions, set(_WITHOUT_PAGE))
        self.assertEqual(functions - exports, set())

    def test_codes_are_those_of_the_headers(self):
        codes = {version: _codes(folder) for version, (folder, _) in _VERSIONS.items()}
        for name, function in self.functions.items():
            listed = [code for code, _ in function.codes]
            with self.subTest(name):
                self.assertEqual(len(listed), len(set(listed)))
                self.assertTrue(listed)
                known = [codes[version] for version in _VERSIONS if function.in_version(version)]
                self.assertLessEqual(set(listed), set().union(*known or [codes["1.2"]]))
                if "DAT_%s_HANDLE" % name.split("_")[1].upper() in " ".join(function.forms[-1][1][:1]):
                    self.assertIn("DAT_INVALID_HANDLE", listed)

    def test_codes_named_in_the_headers_are_listed(self):
        for folder, _ in _VERSIONS.values():
            named = _named_codes(folder)
            self.assertGreater(len(named), 70)
            for name, codes in named.items():
                with self.subTest(name):
                    # The beginning of every RETURN VALUE has it.
                    codes -= {"DAT_INSUFFICIENT_RESOURCES"}
                    self.assertLessEqual(codes, {code for code, _ in self.functions[name].codes})

    def test_codes_that_are_listed_are_named_in_the_headers(self):
        # The beginning of dat_functions.h has these for all.
        of_all = {"DAT_INVALID_HANDLE", "DAT_INVALID_PARAMETER", "DAT_INSUFFICIENT_RESOURCES"}
        for version, (folder, _) in _VERSIONS.items():
            for name, codes in _named_codes(folder).items():
                with self.subTest(version=version, name=name):
                    listed = {code for code, _ in self.functions[name].codes} & _codes(folder)
                    self.assertLessEqual(listed - of_all, codes)


if __name__ == "__main__":
    python_main.main()
