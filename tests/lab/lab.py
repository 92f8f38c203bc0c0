"""Runs a test's script by tools/lab."""

import os
import re
import subprocess
import sys
import unittest

from tools.build_rules.python_main import main  # noqa: F401  (what a test in the lab ends with)

# The series of the guest's kernel: Debian 12's own, or the one that tools/lab is asked for.
KERNEL = os.environ.get("LAB_KERNEL") or "6.1"

_NOT_RUN = 125
_NOT_HERE = "tools/lab: not here: "
_CRASHED = "tools/lab: crashed: "
_ATTEMPTS = 3

# After every script, prints how many faults the guest's kernel has logged, and these. A soft lockup is none: under emulation
# it means that the host is busy.
_KERNEL = "==== faults in the kernel's log: "
_JUDGED = """
(
%(script)s
)
status=$?
faults='BUG: (unable|kernel)|kernel BUG at|Oops|general protection|Kernel panic'
dmesg >/tmp/kernel.log && echo && echo "%(kernel)s$(grep -c -E "$faults" /tmp/kernel.log)"
grep -A 30 -E "$faults" /tmp/kernel.log
exit $status
"""

def run(driver, script, net="one", seconds=200):
    """Runs `script` in the lab; returns (exit status, output). Skips the test with the reason if there can be no lab, and fails
    it if the guest's kernel has logged a fault. If QEMU crashes, the script runs again in a new guest.

    The output of a script that failed is followed by what tools/lab itself said, if anything.
    """
    command = ["tools/lab", "--net=" + net, "--seconds=%d" % seconds, driver,
               _JUDGED % {"script": script, "kernel": _KERNEL}]
    for _ in range(_ATTEMPTS):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != _NOT_RUN or _CRASHED not in said:
            break
        print(said, file=sys.stderr)
    if done.returncode == _NOT_RUN and _NOT_HERE in said:
        raise unittest.SkipTest(said[said.rindex(_NOT_HERE) + len(_NOT_HERE):])
    if done.returncode == _NOT_RUN:
        raise AssertionError(done.stdout.decode(errors="replace") + said)
    output = done.stdout.decode(errors="replace")
    judgements = re.findall("^%s(.*)$" % _KERNEL, output, re.MULTILINE)
    if judgements != ["0"] * (2 if net == "two" else 1):
        raise AssertionError("a fault in the kernel's log, or it was not read\n%s\n%s" % (output, said))
    output = re.sub("\n?^%s0\n" % _KERNEL, "", output, flags=re.MULTILINE)
    return done.returncode, output + (said if done.returncode != 0 else "")
