"""Runs shell code for the scripts of this folder, so that nothing of it outlives them."""

import os
import signal
import subprocess
import sys


def end_by_signals():
    """Lets SIGTERM and SIGHUP end the script as an exception does, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def run(code, arguments, stdout=None):
    """(exit status, what it printed if `stdout` is PIPE) of `code`, which gets the arguments. If an exception comes
    meanwhile, as from a signal's handler, the code's processes are interrupted and waited for: Bazel stops its build."""
    process = subprocess.Popen(["sh", "-c", code, "sh"] + list(arguments), stdin=subprocess.DEVNULL, stdout=stdout, text=True,
                               start_new_session=True)
    try:
        output, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
    return process.returncode, output
