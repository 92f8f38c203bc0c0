#!/usr/bin/env python3
"""The table of functions agrees with <vipl.h>; all pages can be made, formatted, and refer to pages that exist."""

import glob
import os
import re
import shutil
import subprocess
import unittest

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


class Pages(unittest.TestCase):

    def setUp(self):
        self._table = make_pages.read_table()
        self._pages = dict(make_pages.pages(self._table))
        self._functions = {function.name: function for page in self._table for function in page.functions}

    def test_functions_are_those_of_the_header(self):
        declared, _ = _declarations()
        self.assertEqual(len(declared), 46)
        signatures = {name: "%s %s(%s)" % (f.result, name, ", ".join(f.parameters)) for name, f in self._functions.items()}
        self.assertEqual(signatures, {name: signature for name, (signature, _) in declared.items()})

    def test_codes_are_those_of_the_header(self):
        declared, codes = _declarations()
        for name, function in self._functions.items():
            listed = [code for code, _ in function.codes]
            with self.subTest(name):
                self.assertEqual(len(listed), len(set(listed)))
                self.assertLessEqual(set(listed), codes)
                self.assertLessEqual(declared[name][1], set(listed), "named in the header's comment")
                if function.result == "VIP_RETURN":
                    self.assertIn("VIP_INVALID_PARAMETER", listed)

    def test_every_function_has_a_page(self):
        self.assertEqual(set(self._pages), {name + ".3" for name in self._functions})
        for name, content in self._pages.items():
            target = re.fullmatch(r"\.so man3/(\S+)\n", content)
            if target:
                self.assertIn(target.group(1), self._pages, name)
                self.assertIn(name[:-2], self._pages[target.group(1)])

    def test_every_text_belongs_to_a_page(self):
        texts = {os.path.basename(path)[:-len(".3.in")] for path in glob.glob("vipl/man/*.3.in")}
        self.assertEqual(texts, {page.name for page in self._table})

    def _written(self):
        yield from self._pages.items()
        for path in glob.glob("vipl/man/*.[57]"):
            with open(path, encoding="utf-8") as page:
                yield os.path.basename(path), page.read()

    def test_references_exist(self):
        others = {"hosts.5", "pkg-config.1", "vipinfo.1", "vipping.1"}
        names = {name for name, _ in self._written()} | others
        for name, content in self._written():
            for page, section in re.findall(r"^\.BR (\S+) \((\d)\)", content, re.M):
                self.assertIn("%s.%s" % (page, section), names, name)
            for function in re.findall(r"\bVip[A-Z]\w+", content):
                self.assertIn(function, self._functions, name)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_pages_format_without_a_warning(self):
        for name, content in self._written():
            if content.startswith(".so "):
                continue
            with self.subTest(name):
                result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=content, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
