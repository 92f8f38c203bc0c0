"""A test's way into tools/lab."""

import subprocess
import unittest

_NOT_RUN = 125


def run(driver, script, net="one", seconds=200):
    """(exit status, output) of `script` in the lab; skips the test with the reason where there can be no lab."""
    done = subprocess.run(["tools/lab", "--net=" + net, "--seconds=%d" % seconds, driver, script], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == _NOT_RUN and "tools/lab: missing" in said:
        raise unittest.SkipTest(said.splitlines()[-1])
    if done.returncode == _NOT_RUN:
        raise AssertionError(done.stdout.decode(errors="replace") + said)
    return done.returncode, done.stdout.decode(errors="replace")
