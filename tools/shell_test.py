#!/usr/bin/env python3
"""Runs shell.py."""

import subprocess
import sys
import unittest

sys.path.insert(0, "tools")

import shell  # noqa: E402  (found through the line above)  pylint: disable=import-error,wrong-import-position

# Ends by SIGTERM while the code below it runs, which tells when it was interrupted.
_SCRIPT = """
import subprocess, sys
sys.path.insert(0, "tools")
import shell
shell.end_by_signals()
shell.run('trap "echo interrupted; exit" INT; echo running; while :; do sleep 0.1; done', [])
"""


class Shell(unittest.TestCase):

    def test_the_status_and_what_it_printed(self):
        self.assertEqual(shell.run('echo "$2"; exit 3', ["a", "b c"], stdout=subprocess.PIPE), (3, "b c\n"))

    def test_a_signal_ends_what_it_runs(self):
        with subprocess.Popen([sys.executable, "-B", "-c", _SCRIPT], stdout=subprocess.PIPE, text=True) as script:
            self.assertEqual(script.stdout.readline(), "running\n")
            script.terminate()
            self.assertEqual(script.stdout.read(), "interrupted\n")  # and nobody holds the pipe any more
        self.assertEqual(script.returncode, 143)


if __name__ == "__main__":
    unittest.main()
