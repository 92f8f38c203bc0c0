#!/usr/bin/env python3
"""Runs pairs of datping over the wire that VIADUCT_WIRE names."""

import json
import re
import secrets
import subprocess
import unittest

_PROGRAM = "tools/datping/datping"
_SECONDS = 60
# No other running test listens there: a number beyond the ports is a name.
_SERVICE = str(1 << 32 | secrets.randbits(31))


def _run(*arguments):
    return subprocess.run((_PROGRAM,) + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=_SECONDS,
                          check=False)


def _client(*arguments):
    return _run("-s", _SERVICE, *arguments, "localhost")


class Server:
    """A datping --listen that answers one client, or all until it is killed."""

    def __init__(self, *arguments):
        self._process = subprocess.Popen((_PROGRAM, "--listen", "-s", _SERVICE) + arguments, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        return self

    def end(self):
        """Exit status and output of a server that ends by itself."""
        output, _ = self._process.communicate(timeout=_SECONDS)
        return self._process.returncode, output

    def __exit__(self, *unused):
        self._process.kill()
        self._process.communicate()


class Datping(unittest.TestCase):

    def _measure(self, *arguments):
        result = _client("--json", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return json.loads(result.stdout)

    def test_every_way_to_measure(self):
        with Server():
            for test in ("latency", "bandwidth"):
                for operation in ("send", "write", "read"):
                    for completion in ("poll", "wait", "cno"):
                        with self.subTest("%s %s %s" % (test, operation, completion)):
                            report = self._measure("-t", test, "-o", operation, "-c", completion, "-n", "200", "-b", "512", "-q", "8",
                                                   "-w", "5")
                            self.assertEqual((report["test"], report["operation"], report["completion"]), (test, operation, completion))
                            self.assertEqual(report["messages"], 200)
                            self.assertGreater(report["seconds"], 0)

    def test_connections(self):
        with Server():
            report = self._measure("-t", "connect", "-n", "30", "-C", "3")
            self.assertEqual(report["messages"], 90)
            self.assertGreater(report["connections_per_second"], 0)
            report = self._measure("-C", "4", "-n", "100", "-c", "wait")
            self.assertEqual((report["messages"], report["connections"]), (400, 4))

    def test_sizes(self):
        with Server():
            for size, operation, test in ((0, "send", "latency"), (0, "read", "latency"), (1, "write", "latency"), (100000, "send", "latency"),
                                          (16 << 20, "write", "bandwidth"), (1 << 20, "read", "bandwidth")):
                with self.subTest("%d %s" % (size, operation)):
                    report = self._measure("-t", test, "-o", operation, "-b", str(size), "-n", "8", "-q", "4", "-w", "1")
                    self.assertEqual(report["bytes"], size)

    def test_percentiles_and_histogram(self):
        with Server("--once") as server:
            report = self._measure("-n", "1000", "--histogram")
            self.assertEqual(server.end(), (0, ""))
        values = [report["us"][name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)
        self.assertEqual(sum(bucket["count"] for bucket in report["histogram"]), 1000)

    def test_text(self):
        with Server():
            result = _client("-n", "100", "-H")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"\Alatency to localhost over soft0, 1 connection\n")
            self.assertRegex(result.stdout, r"min [\d.]+  mean [\d.]+  p50 [\d.]+ .* p99\.9 [\d.]+  max ")
            self.assertRegex(result.stdout, r"\n  < +[\d.]+ us +\d+  #")
            self.assertRegex(_client("-t", "bandwidth", "-T", "0.2").stdout, r"[\d.]+ MiB/s, \d+ messages/s\n")
            self.assertRegex(_client("-t", "connect", "-n", "5").stdout, r"\d+ connections/s\n")

    def test_what_fails(self):
        result = _client("--timeout=1", "-n", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nobody listens on localhost", result.stderr)
        result = _run("no-such-host.invalid")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no-such-host.invalid", result.stderr)
        result = _run("-d", "nothing9", "localhost")
        self.assertEqual(result.returncode, 1)
        self.assertIn("dat_ia_open nothing9: DAT_PROVIDER_NOT_FOUND", result.stderr)

    def test_command_line(self):
        for arguments in ((), ("a", "b"), ("--listen", "a"), ("-b", "17M", "a"), ("-b", "x", "a"), ("-q", "1", "a"), ("-c", "no", "a"),
                          ("-C", "0", "a"), ("-n", "0", "a"), ("-T", "0", "a"), ("-n", "1", "-T", "1", "a"), ("-o", "write", "-b", "0", "a"),
                          ("-s", "x", "a"), ("--nonsense", "a")):
            with self.subTest(str(arguments)):
                result = _run(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr)
        self.assertEqual(_run("--help").returncode, 0)
        self.assertRegex(_run("--version").stdout, r"\Adatping \d+\.\d+\.\d+\n\Z")

    def test_the_manual_has_every_option(self):
        with open("tools/datping/datping.1", encoding="utf-8") as page:
            manual = page.read().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", _run("--help").stdout):
            self.assertIn(option, manual)


if __name__ == "__main__":
    unittest.main()
