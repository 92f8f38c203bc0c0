#!/usr/bin/env python3
"""Runs pairs of datping over the wire that VIADUCT_WIRE names."""

import os
import secrets
import tempfile
import unittest
import unittest.mock

from tools.ping import pair


class Datping(pair.PingTestCase):

    name = "datping"
    # A number beyond the ports is a name.
    service = str(1 << 32 | secrets.randbits(31))

    def test_every_way_to_measure(self):
        with self.server():
            for test in ("latency", "bandwidth"):
                for operation in ("send", "write", "read"):
                    for completion in ("poll", "wait", "cno"):
                        with self.subTest("%s %s %s" % (test, operation, completion)):
                            self.check_way(test, operation, completion)

    def test_connections(self):
        with self.server():
            report = self.measure("-t", "connect", "-n", "30", "-C", "3")
            self.assertEqual(report["messages"], 90)
            self.assertGreater(report["connections_per_second"], 0)
            report = self.measure("-C", "4", "-n", "100", "-c", "wait")
            self.assertEqual((report["messages"], report["connections"]), (400, 4))

    def test_once_ends_with_the_client(self):
        for arguments in (("-C", "3"), ("-t", "bandwidth"), ("-t", "connect"), ("-t", "connect", "-C", "3")):
            with self.subTest(arguments), self.server("--once") as server:
                self.measure("-n", "30", *arguments)
                self.assertEqual(server.end(), (0, ""))

    def test_sizes(self):
        with self.server():
            self.check_sizes((0, "send", "latency"), (0, "read", "latency"), (1, "write", "latency"), (100000, "send", "latency"),
                             (16 << 20, "write", "bandwidth"), (1 << 20, "read", "bandwidth"))

    def test_percentiles_and_histogram(self):
        with self.server("--once") as server:
            report = self.measure("-n", "1000", "--histogram")
            self.assertEqual(server.end(), (0, ""))
        self.check_latencies(report["us"], report["histogram"], 1000)

    def test_text(self):
        with self.server():
            result = self.client("-n", "100", "-H")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_text(result.stdout, r"latency to localhost over soft0, 1 connection\n")
            self.assertRegex(self.client("-t", "bandwidth", "-T", "0.2").stdout, r"[\d.]+ MiB/s, \d+ messages/s\n")
            self.assertRegex(self.client("-t", "connect", "-n", "5").stdout, r"\d+ connections/s\n")

    def test_a_line_that_says_nonthreadsafe(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
            conf.write('mine u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "lo 0" ""\n')
            conf.flush()
            with unittest.mock.patch.dict(os.environ, DAT_OVERRIDE=conf.name), self.server("-d", "mine"):
                result = self.client("-d", "mine", "-n", "10")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_fails(self):
        result = self.client("--timeout=1", "-n", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nobody listens on localhost", result.stderr)
        result = self.run_program("no-such-host.invalid")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no-such-host.invalid", result.stderr)
        result = self.run_program("-d", "nothing9", "localhost")
        self.assertEqual(result.returncode, 1)
        self.assertIn("dat_ia_open nothing9: DAT_PROVIDER_NOT_FOUND", result.stderr)

    def test_shortage(self):
        for arguments in ((), ("-t", "connect")):
            with self.subTest(arguments):
                self.check_shortage("datping: the server has rejected this: it says why\n", *arguments)
            with self.subTest(arguments, once=True), self.short_server(1, "--once") as server:
                self.assertEqual(self.client(*arguments).returncode, 1)
                status, output = server.end()
                self.assertRegex(output, r"\Adatping: dat_ep_create: DAT_INSUFFICIENT_RESOURCES.*\ndatping: the client did not end in order\n\Z")
                self.assertEqual(status, 1)

    def test_the_first_failure_ends_all(self):
        for test, call in ("latency", 2), ("bandwidth", 2), ("connect", 3):  # the connect test keeps one connection
            with self.subTest(test), self.short_server(call):
                result = self.client("-t", test, "-C", "2", "-T", str(10 * pair.SECONDS))
                self.assertEqual((result.returncode, result.stderr), (1, "datping: the server has rejected this: it says why\n"))

    def test_command_line(self):
        self.check_command_line(("-C", "0", "a"), ("-s", "x", "a"))

    def test_the_manual_has_every_option(self):
        self.check_manual()


if __name__ == "__main__":
    unittest.main()
