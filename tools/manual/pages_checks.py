"""The checks of every folder of manual pages: all pages can be made and formatted, and refer to pages that exist."""

import glob
import os
import re
import shutil
import subprocess
import unittest


class PagesChecks:
    """Mixed into a unittest.TestCase that defines MANUAL (a manual.Manual), its FOLDER from the top of the repository, the
    pattern FUNCTION of the functions' names, and OTHERS, pages that are elsewhere."""

    NAMES = frozenset()  # names that look like a function's and have no page

    def setUp(self):
        self.table = self.MANUAL.read_table()
        self.pages = dict(self.MANUAL.pages(self.table))
        self.functions = {function.name: function for page in self.table for function in page.functions}

    def test_every_function_has_a_page(self):
        self.assertEqual(set(self.pages), {name + ".3" for name in self.functions})
        for name, content in self.pages.items():
            target = re.fullmatch(r"\.so man3/(\S+)\n", content)
            if target:
                self.assertIn(target.group(1), self.pages, name)
                self.assertIn(name[:-2], self.pages[target.group(1)])

    def test_every_text_belongs_to_a_page(self):
        texts = {os.path.basename(path)[:-len(".3.in")] for path in glob.glob(self.FOLDER + "/*.3.in")}
        self.assertEqual(texts, {page.name for page in self.table})

    def _written(self):
        yield from self.pages.items()
        for path in glob.glob(self.FOLDER + "/*.[57]"):
            with open(path, encoding="utf-8") as page:
                yield os.path.basename(path), page.read()

    def test_references_exist(self):
        names = {name for name, _ in self._written()} | self.OTHERS
        for name, content in self._written():
            for page, section in re.findall(r"^\.BR (\S+) \((\d)\)", content, re.M):
                self.assertIn("%s.%s" % (page.replace("\\-", "-"), section), names, name)
            for function in re.findall(self.FUNCTION, content):
                if function not in self.NAMES:
                    self.assertIn(function, self.functions, name)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_pages_format_without_a_warning(self):
        for name, content in self._written():
            if content.startswith(".so "):
                continue
            with self.subTest(name):
                result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=content, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
