#!/usr/bin/env python3
"""Runs shell.py."""

import signal
import subprocess
import sys
import unittest

sys.path.insert(0, "tools")

import shell  # noqa: E402  (found through the line above)  pylint: disable=import-error,wrong-import-position

# A script that ends by a signal while its shell code runs; the code prints when it was interrupted.
_SCRIPT = """
import subprocess, sys, time
sys.path.insert(0, "tools")
import shell
class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        time.sleep(float(sys.argv[1]))
subprocess.Popen = Popen
shell.end_by_signals()
shell.run('trap "echo interrupted; exit" INT; echo running; while :; do sleep 0.1; done', [])
"""


class Shell(unittest.TestCase):

    def test_the_status_and_what_it_printed(self):
        self.assertEqual(shell.run('echo "$2"; exit 3', ["a", "b c"], stdout=subprocess.PIPE), (3, "b c\n"))

    def _is_ended(self, number, *command, late=0):
        with subprocess.Popen([*command, sys.executable, "-B", "-c", _SCRIPT, str(late)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as script:
            self.assertEqual(script.stdout.readline(), "running\n")
            script.send_signal(number)
            self.assertEqual(script.stdout.read(), "interrupted\n")  # and nobody holds the pipe any more
        self.assertEqual(script.returncode, 128 + number)

    def test_a_signal_ends_what_it_runs(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self._is_ended(number)

    def test_a_signal_while_it_is_started(self):
        self._is_ended(signal.SIGTERM, late=1)

    def test_in_the_background_of_a_shell(self):
        self._is_ended(signal.SIGTERM, "env", "--ignore-signal=INT")


if __name__ == "__main__":
    unittest.main()
