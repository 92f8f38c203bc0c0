#!/usr/bin/env python3
"""Runs pairs of vipping over the wire that VIADUCT_WIRE names."""

import json
import os
import re
import secrets
import subprocess
import unittest

_PROGRAM = "tools/vipping/vipping"
_SECONDS = 60


# No other running test waits there.
_NAME = "vp" + secrets.token_hex(6)


def _service(suffix=""):
    return _NAME + suffix


def _run(*arguments):
    return subprocess.run((_PROGRAM,) + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=_SECONDS,
                          check=False)


class Server:
    """A vipping --listen that answers one client, or all until it is killed."""

    def __init__(self, *arguments):
        self._process = subprocess.Popen((_PROGRAM, "--listen", "-s", _service()) + arguments, stdout=subprocess.PIPE,
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


def _client(*arguments):
    return _run("-s", _service(), *arguments, "localhost")


class Vipping(unittest.TestCase):

    def _measure(self, *arguments):
        result = _client("--json", "--quiet", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return json.loads(result.stdout)

    def test_every_way_to_measure(self):
        with Server():
            for test in ("latency", "bandwidth"):
                for operation in ("send", "write"):
                    for completion in ("poll", "wait", "cq"):
                        for level in ("ud", "rd", "rr"):
                            with self.subTest("%s %s %s %s" % (test, operation, completion, level)):
                                report = self._measure("-t", test, "-o", operation, "-c", completion, "-r", level, "-n", "200", "-b", "512",
                                                       "-q", "8", "-w", "5")
                                self.assertEqual((report["test"], report["operation"], report["completion"], report["reliability"]),
                                                 (test, operation, completion, level))
                                self.assertEqual(report["messages"], 200)
                                self.assertGreater(report["seconds"], 0)

    def test_sizes(self):
        with Server():
            for size, operation, test in ((0, "send", "latency"), (1, "write", "latency"), (100000, "send", "latency"),
                                          (16 << 20, "write", "bandwidth"), (1 << 20, "send", "bandwidth")):
                with self.subTest("%d %s" % (size, operation)):
                    report = self._measure("-t", test, "-o", operation, "-b", str(size), "-n", "8", "-q", "4", "-w", "1")
                    self.assertEqual(report["bytes"], size)
            report = self._measure("-t", "bandwidth", "-b", "2K", "-n", "100", "-q", "7")
            self.assertEqual(report["bytes"], 2048)
            self.assertGreaterEqual(report["messages"], 100)
            self.assertGreater(report["mebibytes_per_second"], 0)

    def test_percentiles_and_histogram(self):
        with Server("--once") as server:
            report = self._measure("-n", "1000", "--histogram")
            self.assertEqual(server.end(), (0, ""))
        micros = report["half_round_trip_us"]
        values = [micros[name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)
        self.assertLessEqual(micros["min"], micros["mean"])
        self.assertEqual(sum(bucket["count"] for bucket in report["histogram"]), 1000)
        self.assertEqual(report["device"], "soft")
        self.assertIn(os.environ["VIADUCT_WIRE"], report["reason"])

    def test_text(self):
        with Server():
            result = _client("-n", "100", "-H")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"\Alatency to localhost over nic0 \(soft: ")
            self.assertRegex(result.stdout, r"min [\d.]+  mean [\d.]+  p50 [\d.]+ .* p99\.9 [\d.]+  max ")
            self.assertRegex(result.stdout, r"\n  < +[\d.]+ us +\d+  #")
            result = _client("-t", "bandwidth", "-n", "100")
            self.assertRegex(result.stdout, r"[\d.]+ MiB/s, \d+ messages/s\n")

    def test_progress_of_a_long_run(self):
        with Server():
            result = _client("--seconds=2.5")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, r"\Avipping: 1 of 2 s, \d+ messages\nvipping: 2 of 2 s")

    def test_a_client_may_come_first(self):
        client = subprocess.Popen((_PROGRAM, "-s", _service("f"), "-n", "10", "-j", "localhost"), stdout=subprocess.PIPE, text=True)
        with Server("--once", "-s", _service("f")) as server:
            output, _ = client.communicate(timeout=_SECONDS)
            self.assertEqual(client.returncode, 0)
            self.assertEqual(json.loads(output)["messages"], 10)
            self.assertEqual(server.end(), (0, ""))

    def test_what_fails(self):
        result = _client("--timeout=1", "-n", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("VipConnectRequest to localhost: VIP_NO_MATCH", result.stderr)
        result = _run("no-such-host.invalid")
        self.assertEqual(result.returncode, 1)
        self.assertIn("VIP_ERROR_NAMESERVICE", result.stderr)

    def test_command_line(self):
        for arguments in ((), ("a", "b"), ("--listen", "a"), ("-b", "17M", "a"), ("-b", "x", "a"), ("-q", "1", "a"), ("-c", "no", "a"),
                          ("-r", "rx", "a"), ("-n", "0", "a"), ("-T", "0", "a"), ("-n", "1", "-T", "1", "a"), ("-o", "write", "-b", "0", "a"),
                          ("-s", "x" * 17, "a"), ("--nonsense", "a")):
            with self.subTest(str(arguments)):
                result = _run(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr)
        self.assertEqual(_run("--help").returncode, 0)
        self.assertRegex(_run("--version").stdout, r"\Avipping \d+\.\d+\.\d+\n\Z")

    def test_the_manual_has_every_option(self):
        with open("tools/vipping/vipping.1", encoding="utf-8") as page:
            manual = page.read().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", _run("--help").stdout):
            self.assertIn(option, manual)


if __name__ == "__main__":
    unittest.main()
