#!/usr/bin/env python3
"""The tree keeps its manners, and each lapse is found when one is seeded."""

import os
import tempfile
import unittest

from tests.layering import manners, tree


class TheTree(unittest.TestCase):

    def test_keeps_its_manners(self):
        self.assertEqual(manners.check(tree.root()), [])


class Seeded(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._root = folder.name
        self._write("verbs/README.md", "")

    def _write(self, path, text):
        path = os.path.join(self._root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    def _check(self, path, text, problems):
        self._write(path, text)
        self.assertEqual(manners.check(self._root), problems)

    def test_nine_hundred_lines_are_fine(self):
        self._check("verbs/a.cc", "\n" * 900, [])

    def test_longer_source_is_refused(self):
        self._check("verbs/a.cc", "\n" * 901, ["verbs/a.cc: 901 lines, more than 900"])

    def test_folder_without_readme_is_refused(self):
        self._check("verbs/soft/a.h", "", ["verbs/soft: no README.md"])

    def test_folder_of_public_headers_needs_none(self):
        self._check("verbs/include/dat/a.h", "", [])

    def test_machine_path_is_refused(self):
        path = "/ho" + "me/somebody/x"
        self._check("verbs/README.md", "see %s\n" % path, ["verbs/README.md:1: a path of one machine: /ho" + "me/s"])

    def test_path_in_a_home_is_fine(self):
        self._check("verbs/README.md", "~/work/x $HOME/work/x tests/work/x\n", [])

    def test_work_left_to_do_is_refused(self):
        line = "// TO" + "DO: write it"
        self._check("verbs/a.cc", "\n%s\n" % line, ["verbs/a.cc:2: left to do: " + line])

    def test_skip_that_nobody_counts_is_refused(self):
        skip, end = "self.skip" "Test('no device')\n", "unittest" ".main()"
        self._check("verbs/a_test.py", skip + end, ["verbs/a_test.py: skips behind %s; python_main.main() counts them" % end])

    def test_skip_that_is_counted_is_fine(self):
        self._check("verbs/a_test.py", "self.skip" "Test('no device')\npython_main.main()\n", [])


if __name__ == "__main__":
    unittest.main()
