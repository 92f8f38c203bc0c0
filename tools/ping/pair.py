"""Runs pairs of a ping program, a server and a client, for the tests of vipping and datping."""

import json
import os
import re
import subprocess
import unittest

SECONDS = 60


class Server:
    """A program that listens and answers one client, or all until it is killed."""

    def __init__(self, program, *arguments, **environment):
        self._process = subprocess.Popen((program, "--listen") + arguments, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        return self

    def end(self):
        """Exit status and output of a server that ends by itself."""
        output, _ = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, output

    def __exit__(self, *unused):
        self._process.kill()
        self._process.communicate()


class PingTestCase(unittest.TestCase):
    """A test of the program tools/NAME/NAME. No other running test listens at `service`."""

    name = ""
    service = ""
    report_options = ("--json",)

    def program(self):
        return "tools/%s/%s" % (self.name, self.name)

    def run_program(self, *arguments):
        return subprocess.run((self.program(),) + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS, check=False)

    def client(self, *arguments):
        return self.run_program("-s", self.service, *arguments, "localhost")

    def server(self, *arguments):
        return Server(self.program(), "-s", self.service, *arguments)

    def short_server(self, call, *arguments):
        """A server that fails to make what a connection needs, only at its first, second, ... attempt."""
        return Server(self.program() + "_short", "-s", self.service, *arguments, SHORTAGE=str(call))

    def measure(self, *arguments):
        """Runs a client, which must succeed, and returns its report."""
        result = self.client(*self.report_options, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return json.loads(result.stdout)

    def check_way(self, test, operation, completion, *further):
        report = self.measure("-t", test, "-o", operation, "-c", completion, "-n", "200", "-b", "512", "-q", "8", "-w", "5", *further)
        self.assertEqual((report["test"], report["operation"], report["completion"]), (test, operation, completion))
        self.assertEqual(report["messages"], 200)
        self.assertGreater(report["seconds"], 0)
        return report

    def check_sizes(self, *cases):
        """Each case is a size, an operation and a test."""
        for size, operation, test in cases:
            with self.subTest("%d %s" % (size, operation)):
                report = self.measure("-t", test, "-o", operation, "-b", str(size), "-n", "8", "-q", "4", "-w", "1")
                self.assertEqual(report["bytes"], size)

    def check_latencies(self, micros, histogram, count):
        values = [micros[name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)
        self.assertLessEqual(micros["min"], micros["mean"])
        self.assertEqual(sum(bucket["count"] for bucket in histogram), count)

    def check_shortage(self, complaint, *arguments):
        """A client that meets its server's shortage is rejected, whatever its patience, and the next one is served."""
        with self.short_server(1):
            result = self.client("--timeout=%d" % (10 * SECONDS), *arguments)
            self.assertEqual((result.returncode, result.stderr), (1, complaint))
            self.measure("-n", "10", *arguments)

    def check_text(self, text, first_line):
        self.assertRegex(text, r"\A" + first_line)
        self.assertRegex(text, r"min [\d.]+  mean [\d.]+  p50 [\d.]+ .* p99\.9 [\d.]+  max ")
        self.assertRegex(text, r"\n  < +[\d.]+ us +\d+  #")

    def check_command_line(self, *wrong):
        """Every line of `wrong`, and every line that is wrong for both programs, is refused."""
        for arguments in ((), ("a", "b"), ("--listen", "a"), ("-b", "17M", "a"), ("-b", "x", "a"), ("-q", "1", "a"), ("-c", "no", "a"),
                          ("-n", "0", "a"), ("-T", "0", "a"), ("-n", "1", "-T", "1", "a"), ("-o", "write", "-b", "0", "a"),
                          ("--nonsense", "a")) + wrong:
            with self.subTest(str(arguments)):
                result = self.run_program(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr)
        self.assertEqual(self.run_program("--help").returncode, 0)
        self.assertRegex(self.run_program("--version").stdout, r"\A%s \d+\.\d+\.\d+\n\Z" % self.name)

    def check_manual(self):
        with open(self.program() + ".1", encoding="utf-8") as page:
            manual = page.read().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", self.run_program("--help").stdout):
            self.assertIn(option, manual)
