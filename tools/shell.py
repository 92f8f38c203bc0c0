"""Runs shell code for the scripts of this folder, so that nothing of it outlives them."""

import contextlib
import os
import signal
import subprocess
import sys


# What ends a script.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_by_signals():
    """Lets these end the script as an exception does, and without a word, unless they are ignored."""
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


@contextlib.contextmanager
def _undisturbed():
    """What would end the script in this block ends it behind it."""
    came, handlers = [], {}
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            handlers[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def run(code, arguments, stdout=None):
    """(exit status, what it printed if `stdout` is PIPE) of `code`, which gets the arguments. If an exception comes
    meanwhile, as from a signal's handler, the code's processes are interrupted and waited for: Bazel stops its build."""
    # A script that a shell has put into the background ignores SIGINT, and so would all that it starts.
    command = ["env", "--default-signal=INT", "sh", "-c", code, "sh", *arguments]
    process = None
    try:
        with _undisturbed():  # or a process is started that nobody knows
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, text=True, start_new_session=True)
        output, _ = process.communicate()
    except BaseException:
        if process is not None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
        raise
    return process.returncode, output
