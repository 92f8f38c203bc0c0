#!/usr/bin/env python3
"""Runs vipinfo."""

import json
import os
import re
import subprocess
import tempfile
import unittest

_PROGRAM = "tools/vipinfo/vipinfo"
_NO_NIC = "VIP_INVALID_PARAMETER: there is no such NIC, or it cannot be opened and a warning in the log says why"


def _run(*arguments, **settings):
    environment = dict(os.environ, **settings)
    return subprocess.run((_PROGRAM,) + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                          check=False)


class Vipinfo(unittest.TestCase):

    def _file(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".txt")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_json(self):
        result = _run("--json", "/dev/via_lo")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        nic, = json.loads(result.stdout)
        self.assertEqual((nic["name"], nic["address"], nic["device"]), ("/dev/via_lo", "127.0.0.1", "soft"))
        self.assertTrue(nic["reason"])
        self.assertIs(nic["ThreadSafe"], True)
        self.assertEqual(nic["NicAddressLen"], 6)
        self.assertGreaterEqual(nic["MaxTransferSize"], 16 << 20)
        self.assertEqual(nic["ReliabilityLevelSupport"], ["unreliable delivery", "reliable delivery", "reliable reception"])
        self.assertNotIn("addresses", nic)

    def test_text_tells_the_same(self):
        nic, = json.loads(_run("--json", "/dev/via_lo").stdout)
        lines = _run("/dev/via_lo").stdout.splitlines()
        self.assertEqual(lines[0], "/dev/via_lo")
        self.assertEqual([line.split()[0] for line in lines[1:]], list(nic)[1:])

    def test_the_usual_names(self):
        result = _run("--short")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        names = [line.split()[0] for line in result.stdout.splitlines()]
        self.assertEqual(names[:2], ["nic0", "/dev/via_lo"])
        self.assertEqual(len(names), len(set(names)))

    def test_device_by_the_file_of_names(self):
        path = self._file("clan0 lo iwarp\nclosed none\n")
        result = _run("-s", "clan0", "closed", VIADUCT_VIP_NICS=path)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\Aclan0 +127\.0\.0\.1 +soft: .*wires: iwarp\n\Z")
        self.assertEqual(result.stderr, f"vipinfo: closed: {_NO_NIC}\n")
        _, closed = json.loads(_run("-j", "clan0", "closed", VIADUCT_VIP_NICS=path).stdout)
        self.assertEqual(closed, {"name": "closed", "error": _NO_NIC})

    def test_misspelt_variable_is_named_where_its_nic_is_not_found(self):
        result = _run("-s", "clan0", "clan1", VIADUCT_NIC_NAMES="known", VIADUCT_VIP_NICKS="/dev/null")
        why = ": " + _NO_NIC
        self.assertEqual(result.stderr.splitlines(), [
            "viaduct: warn: VIADUCT_VIP_NICKS: no such setting (VIADUCT_VIP_NICS is one)", "vipinfo: clan0" + why, "vipinfo: clan1" + why])

    def test_addresses(self):
        path = self._file("192.0.2.7 seven\n")
        nic, = json.loads(_run("-ja", "/dev/via_lo", VIADUCT_VIP_HOSTS=path).stdout)
        self.assertEqual(len(nic["addresses"]), 2)
        self.assertTrue(nic["addresses"][0].startswith("127.0.0.1"))
        self.assertEqual(nic["addresses"][1], "192.0.2.7 seven")

    def test_output_that_cannot_be_written_is_a_failure(self):
        for arguments in (("-s", "nic0"), ("-j", "nic0"), ("-j",) + ("nic0",) * 10, ("--help",), ("--version",)):
            with self.subTest(arguments), open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run((_PROGRAM,) + arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((result.returncode, result.stderr), (1, "vipinfo: standard output cannot be written\n"))

    def test_command_line(self):
        self.assertEqual(_run("--nonsense").returncode, 2)
        self.assertRegex(_run("--version").stdout, r"\Avipinfo \d+\.\d+\.\d+\n\Z")
        with open("tools/vipinfo/vipinfo.1", encoding="utf-8") as page:
            manual = page.read().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", _run("--help").stdout):
            self.assertIn(option, manual)


if __name__ == "__main__":
    unittest.main()
