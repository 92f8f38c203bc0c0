#!/usr/bin/env python3
"""The pages format without a warning; viaduct.7 names settings that exist, and explains lines that the log has; the page of the
settings, which is made out of their table, has them all."""

import re
import shutil
import subprocess
import unittest

from tools.build_rules import python_main


def _read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def _formats(test, page):
    result = subprocess.run(["groff", "-t", "-man", "-Tutf8", "-ww", "-z"], input=page, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    test.assertEqual((result.returncode, result.stderr), (0, ""))


class SettingsPage(unittest.TestCase):
    def setUp(self):
        self.page = _read("verbs/man/viaduct-settings.7")

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_formats_without_a_warning(self):
        _formats(self, self.page)

    def test_has_every_setting_once(self):
        table = re.findall(r'^    \{"(\w+)", SettingType::', _read("verbs/base/settings.cc"), re.M)
        self.assertIn("VIADUCT_LOG", table)
        self.assertEqual(re.findall(r"^\.TP\n\.B (\w+)$", self.page, re.M), table)

    def test_a_paragraph_says_values_default_and_meaning(self):
        self.assertIn(".B VIADUCT_SILENCE_MS\nIs a number in 100..3600000; by default 10000.\n.br\nHow long a peer may", self.page)
        self.assertIn(".B DAT_OVERRIDE\nIs a path; by default not given.\n", self.page)


class Page(unittest.TestCase):
    def setUp(self):
        self.page = _read("verbs/man/viaduct.7")

    def _diagnostics(self):
        return self.page[self.page.index(".SH DIAGNOSTICS"):]

    @staticmethod
    def _log():
        """What the library may write, with its levels."""
        return re.sub(r'"\s*\n\s*"', "", "".join(_read("verbs/" + name) for name in (
            "open_device.cc", "rdma/errors.cc", "rdma/device.cc", "rdma/open.cc", "rdma/listener.cc", "rdma/queue_pair_connect.cc",
            "rdma/completion_queue.cc")))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_formats_without_a_warning(self):
        _formats(self, self.page)

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
                    self.assertTrue(part.strip() in log, "no file of verbs logs it")

    def test_what_only_a_setting_shows(self):
        for line, text in re.findall(r"^\.TP\n(.+)$([^$]*?)(?=^\.TP|^\.SH)", self._diagnostics(), re.M):
            part = max(line.split("..."), key=len).strip()
            with self.subTest(line):
                levels = re.findall(r"LogLevel::k(\w+)", self._log()[:self._log().index(part)][-160:])
                self.assertEqual("VIADUCT_LOG=info" in text, levels[-1:] == ["Info"])


if __name__ == "__main__":
    python_main.main()
