#!/usr/bin/env python3
"""Runs every measuring program once, briefly, to see that it measures something, not how much."""

import os
import subprocess
import unittest

_FOLDER = "tests/bench"


def run(program, *arguments):
    environment = dict(os.environ, VIADUCT_WIRE="shm")
    return subprocess.run([os.path.join(_FOLDER, program), *arguments], env=environment, capture_output=True, check=False,
                          timeout=120)


class ProgramsTest(unittest.TestCase):
    def measures(self, program, *arguments):
        done = run(program, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        numbers = [float(word) for word in done.stdout.decode().split()]
        self.assertTrue(numbers and all(number >= 0 for number in numbers), done.stdout)

    def interface(self, program):
        cases = [("latency", "--bytes=8", "--iterations=50"), ("latency", "--bytes=4096", "--iterations=50"),
                 ("latency", "--bytes=65536", "--iterations=20"), ("bandwidth", "--iterations=20"),
                 ("write", "--iterations=50"), ("connections", "--iterations=10"), ("death",)]
        for case in cases:
            with self.subTest(program=program, case=case):
                self.measures(program, *case)

    def test_device(self):
        self.interface("device")

    def test_vipl(self):
        self.interface("vipl")

    def test_dat1(self):
        self.interface("dat1")

    def test_dat2(self):
        self.interface("dat2")

    def test_floors(self):
        for case in [("slot", "8", "50"), ("copy", "4096", "50"), ("pipe", "1048576", "20"), ("memcpy", "4096", "20")]:
            with self.subTest(case=case):
                self.measures("floors", *case)

    def test_canary(self):
        self.measures("canary", "0", "1", "5")

    def test_help_and_wrong_arguments(self):
        for program in ("device", "vipl", "dat1", "dat2", "floors"):
            with self.subTest(program=program):
                self.assertEqual(run(program, "--help").returncode, 0)
                self.assertEqual(run(program, "nonsense").returncode, 2)


if __name__ == "__main__":
    unittest.main()
