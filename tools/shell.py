"""Runs shell code for the scripts of this folder, so that nothing of it outlives them."""

import contextlib
import os
import signal
import subprocess
import sys


# The signals that end a script.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_by_signals():
    """Lets the signals in ENDS end the script as an exception does, and silently, unless they are ignored."""
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


@contextlib.contextmanager
def _undisturbed():
    """A signal that would end the script in this block ends it after the block."""
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


def set_up(*groups):
    """Runs tools/setup, in the script's own session, since sudo may ask for a password at the terminal; returns its exit
    status. If an exception comes meanwhile, tools/setup is told to end, and waited for."""
    process = None
    try:
        with _undisturbed():
            process = subprocess.Popen(["tools/setup", *groups], stdin=subprocess.DEVNULL)
        return process.wait()
    except BaseException:
        if process is not None:
            with _undisturbed():  # apt-get may take its time
                process.terminate()
                process.wait()
        raise


def run(code, arguments, stdout=None):
    """Runs `code` with the arguments; returns (exit status, what it printed if `stdout` is PIPE). If an exception comes
    meanwhile, as from a signal handler, the code's processes are interrupted and waited for: Bazel stops its build."""
    # A script that a shell has put into the background ignores SIGINT, and so would all that it starts.
    command = ["env", "--default-signal=INT", "sh", "-c", code, "sh", *arguments]
    process = None
    try:
        with _undisturbed():  # otherwise a process could start that nobody knows
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, text=True, start_new_session=True)
        output, _ = process.communicate()
    except BaseException:
        if process is not None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
        raise
    return process.returncode, output
