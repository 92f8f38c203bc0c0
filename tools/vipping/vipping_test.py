#!/usr/bin/env python3
"""Runs pairs of vipping over the wire that VIADUCT_WIRE names."""

import json
import os
import secrets
import subprocess
import unittest

from tools.ping import pair


class Vipping(pair.PingTestCase):

    name = "vipping"
    report_options = ("--json", "--quiet")
    service = "vp" + secrets.token_hex(6)

    def test_every_way_to_measure(self):
        with self.server():
            for test in ("latency", "bandwidth"):
                for operation in ("send", "write"):
                    for completion in ("poll", "wait", "cq", "notify"):
                        for level in ("ud", "rd", "rr"):
                            with self.subTest("%s %s %s %s" % (test, operation, completion, level)):
                                report = self.check_way(test, operation, completion, "-r", level)
                                self.assertEqual(report["reliability"], level)

    def test_sizes(self):
        with self.server():
            self.check_sizes((0, "send", "latency"), (1, "write", "latency"), (100000, "send", "latency"),
                             (16 << 20, "write", "bandwidth"), (1 << 20, "send", "bandwidth"))
            report = self.measure("-t", "bandwidth", "-b", "2K", "-n", "100", "-q", "7")
            self.assertEqual(report["bytes"], 2048)
            self.assertGreaterEqual(report["messages"], 100)
            self.assertGreater(report["mebibytes_per_second"], 0)

    def test_percentiles_and_histogram(self):
        with self.server("--once") as server:
            report = self.measure("-n", "1000", "--histogram")
            self.assertEqual(server.end(), (0, ""))
        self.check_latencies(report["half_round_trip_us"], report["histogram"], 1000)
        self.assertEqual(report["device"], "soft")
        self.assertIn(os.environ["VIADUCT_WIRE"], report["reason"])

    def test_text(self):
        with self.server():
            result = self.client("-n", "100", "-H")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_text(result.stdout, r"latency to localhost over nic0 \(soft: ")
            result = self.client("-t", "bandwidth", "-n", "100")
            self.assertRegex(result.stdout, r"[\d.]+ MiB/s, \d+ messages/s\n")

    def test_progress_of_a_long_run(self):
        with self.server():
            result = self.client("--seconds=4.5")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, r"\Avipping: [1-3] of 4 s, \d+ messages\nvipping: [2-4] of 4 s")

    def test_a_client_may_come_first(self):
        client = subprocess.Popen((self.program(), "-s", self.service + "f", "-n", "10", "-j", "localhost"), stdout=subprocess.PIPE, text=True)
        with self.server("--once", "-s", self.service + "f") as server:
            output, _ = client.communicate(timeout=pair.SECONDS)
            self.assertEqual(client.returncode, 0)
            self.assertEqual(json.loads(output)["messages"], 10)
            self.assertEqual(server.end(), (0, ""))

    def test_what_fails(self):
        result = self.client("--timeout=1", "-n", "1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "vipping: nobody waits for '%s' on localhost (VIP_NO_MATCH)\n" % self.service)
        result = self.run_program("no-such-host.invalid")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "vipping: no such host 'no-such-host.invalid' (VIP_ERROR_NAMESERVICE)\n")

    def test_shortage(self):
        self.check_shortage("vipping: VipConnectRequest to localhost: VIP_REJECT\n")
        with self.short_server(1, "--once") as server:
            self.assertEqual(self.client().returncode, 1)
            self.assertEqual(server.end(), (1, "vipping: VipCreateVi: VIP_ERROR_RESOURCE\n"))

    def test_command_line(self):
        self.check_command_line(("-r", "rx", "a"), ("-s", "x" * 17, "a"))

    def test_the_manual_has_every_option(self):
        self.check_manual()


if __name__ == "__main__":
    unittest.main()
