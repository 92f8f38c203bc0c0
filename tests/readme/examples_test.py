#!/usr/bin/env python3
"""The programs in README.md compile as the C of their time and of today without a warning; versions agree everywhere."""

import os
import re
import subprocess
import tempfile
import unittest

from tests.layering import tree
from tests.readme import readme

_DIALECTS = ("-std=gnu89", "-std=gnu17")


class Examples(unittest.TestCase):

    def test_programs_compile(self):
        programs = readme.programs()
        self.assertEqual(set(programs), {"knock_via.c", "knock_dat.c"})
        with tempfile.TemporaryDirectory() as folder:
            for name, text in programs.items():
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
                for dialect in _DIALECTS:
                    with self.subTest(name + " " + dialect):
                        result = subprocess.run(
                            ["cc", dialect, "-Wall", "-Werror", "-fsyntax-only", "-I", "vipl/include", "-I", "dat/include", path],
                            cwd=tree.root(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                        self.assertEqual(result.returncode, 0, result.stdout)

    def test_versions_agree(self):
        found = {}
        for path in tree.files(tree.root()):
            if path.endswith(".h"):
                with open(os.path.join(tree.root(), path), encoding="utf-8") as stream:
                    for version in re.findall(r'^#define VIADUCT_VERSION "(.*)"$', stream.read(), re.M):
                        found[path] = version
        with open("README.md", encoding="utf-8") as stream:
            found["README.md"] = re.search(r"^## CHANGELOG\n\n### (\S+)$", stream.read(), re.M).group(1)
        self.assertIn("verbs/base/version.h", found)
        self.assertEqual(set(found.values()), {found["verbs/base/version.h"]}, found)


if __name__ == "__main__":
    unittest.main()
