#!/usr/bin/env python3
"""viaduct.7 formats without a warning, names settings that exist, and explains lines that the log has."""

import re
import shutil
import subprocess
import unittest

from tools.build_rules import python_main


def _read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


class Page(unittest.TestCase):
    def setUp(self):
        self.page = _read("verbs/man/viaduct.7")

    def _diagnostics(self):
        return self.page[self.page.index(".SH DIAGNOSTICS"):]

    @staticmethod
    def _log():
        """What the library may write, with its levels."""
        return re.sub(r'"\s*\n\s*"', "", "".join(_read("verbs/rdma/" + name) for name in (
            "errors.cc", "device.cc", "open.cc", "listener.cc", "queue_pair.cc")))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_formats_without_a_warning(self):
        result = subprocess.run(["groff", "-t", "-man", "-Tutf8", "-ww", "-z"], input=self.page, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_settings_exist(self):
        named = set(re.findall(r"\bVIADUCT_\w+", self.page))
        self.assertTrue(named)
        settings = _read("verbs/base/settings.cc")
        for name in named:
            self.assertIn('{"%s",' % name, settings)

    def test_lines_of_the_log(self):
        lines = re.findall(r"^\.TP\n(.+)$", self._diagnostics(), re.M)
        self.assertGreater(len(lines), 4)
        log = self._log()
        for line in lines:
            for part in line.split("..."):
                with self.subTest(line):
                    self.assertIn(part.strip(), log)

    def test_what_only_a_setting_shows(self):
        for line, text in re.findall(r"^\.TP\n(.+)$([^$]*?)(?=^\.TP|^\.SH)", self._diagnostics(), re.M):
            part = max(line.split("..."), key=len).strip()
            with self.subTest(line):
                levels = re.findall(r"LogLevel::k(\w+)", self._log()[:self._log().index(part)][-160:])
                self.assertEqual("VIADUCT_LOG=info" in text, levels[-1:] == ["Info"])


if __name__ == "__main__":
    python_main.main()
