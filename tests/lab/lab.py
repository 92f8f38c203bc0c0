"""A test's way into tools/lab."""

import subprocess
import unittest

from tools.build_rules.python_main import main  # noqa: F401  (what a test in the lab ends with)

_NOT_RUN = 125
_NOT_HERE = "tools/lab: not here: "


def run(driver, script, net="one", seconds=200):
    """(exit status, output) of `script` in the lab; skips the test with the reason where there can be no lab.

    Behind the output of a script that failed comes what tools/lab said itself, if anything.
    """
    done = subprocess.run(["tools/lab", "--net=" + net, "--seconds=%d" % seconds, driver, script], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == _NOT_RUN and _NOT_HERE in said:
        raise unittest.SkipTest(said[said.rindex(_NOT_HERE) + len(_NOT_HERE):])
    if done.returncode == _NOT_RUN:
        raise AssertionError(done.stdout.decode(errors="replace") + said)
    return done.returncode, done.stdout.decode(errors="replace") + (said if done.returncode != 0 else "")
