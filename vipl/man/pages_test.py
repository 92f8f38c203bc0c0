#!/usr/bin/env python3
"""The table of functions agrees with <vipl.h>; all pages can be made, formatted, and refer to pages that exist."""

import re
import unittest

from tools.build_rules import python_main
from tools.manual import pages_checks
from vipl.man import make_pages

_HEADER = "vipl/include/vipl.h"
_DECLARATION = re.compile(r"(?:/\*((?:[^*]|\*(?!/))*)\*/\n)?(?:extern [^;]*;\n)+")


def _declarations():
    """{function: (signature as the table has it, codes that the comment before it names)} of the header."""
    with open(_HEADER, encoding="utf-8") as header:
        text = header.read()
    codes = set(re.findall(r"^  VIP_(\w+) = \d+,?", text[:text.index("} VIP_RETURN;")], re.M))
    found = {}
    for block in _DECLARATION.finditer(text[text.index("==== NIC ===="):]):
        named = set(re.findall(r"\b[A-Z_]+\b", block.group(1) or "")) & codes
        for result, name, parameters in re.findall(r"extern (\w+) (\w+)\(([^;]*)\);", block.group()):
            parameters = re.sub(r"\b(IN|OUT)\b", "", parameters)
            parameters = [" ".join(each.split()) for each in parameters.split(",")]
            found[name] = ("%s %s(%s)" % (result, name, ", ".join(parameters)), {"VIP_" + code for code in named})
    return found, {"VIP_" + code for code in codes}


class Pages(pages_checks.PagesChecks, unittest.TestCase):
    MANUAL = make_pages.MANUAL
    FOLDER = "vipl/man"
    FUNCTION = r"\bVip[A-Z]\w+"
    OTHERS = {"hosts.5", "pkg-config.1", "viaduct-settings.7", "viaduct.7", "vipinfo.1", "vipping.1"}

    def test_functions_are_those_of_the_header(self):
        declared, _ = _declarations()
        self.assertEqual(len(declared), 46)
        signatures = {name: "%s %s(%s)" % (f.result, name, ", ".join(f.parameters)) for name, f in self.functions.items()}
        self.assertEqual(signatures, {name: signature for name, (signature, _) in declared.items()})

    def test_codes_are_those_of_the_header(self):
        declared, codes = _declarations()
        for name, function in self.functions.items():
            listed = [code for code, _ in function.codes]
            with self.subTest(name):
                self.assertEqual(len(listed), len(set(listed)))
                self.assertLessEqual(set(listed), codes)
                self.assertLessEqual(declared[name][1], set(listed), "named in the header's comment")
                if function.result == "VIP_RETURN":
                    self.assertIn("VIP_INVALID_PARAMETER", listed)


if __name__ == "__main__":
    python_main.main()
