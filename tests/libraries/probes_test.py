#!/usr/bin/env python3
"""The static probes of libviaduct.so.1 are those that viaduct(7) documents, with as many arguments, and gdb stops at them."""

import random
import re
import shutil
import subprocess
import unittest

from tools.build_rules import python_main

_ENGINE = "dat/core/libviaduct.so.1"
_PROGRAM = "dat/examples/hello"


def _read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def _notes():
    """{name: the numbers of arguments at its places} of the provider viaduct."""
    output = subprocess.run(["readelf", "--notes", _ENGINE], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for name, arguments in re.findall(r"Provider: viaduct\s+Name: (\w+)\s+Location:.*\s+Arguments: ?(.*)", output):
        found.setdefault(name, set()).add(len(arguments.split()))
    return found


def _documented():
    page = _read("verbs/man/viaduct.7")
    section = page[page.index(".SH PROBES"):page.index(".SH DIAGNOSTICS")]
    return {name: {len(arguments.split(", "))} for name, arguments in re.findall(r"^\.BI (\w+)\( \"(.*)\" \)$", section, re.M)}


class Probes(unittest.TestCase):
    def test_are_what_the_manual_says(self):
        documented = _documented()
        self.assertIn("completion", documented)
        self.assertEqual(_notes(), documented)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_a_debugger_stops_at_them(self):
        service = str(random.randrange(1 << 16, 1 << 48))
        commands = ("set breakpoint pending on", "break -probe-stap viaduct:state",
                    "break -probe-stap viaduct:completion", "run",
                    "printf \"%s by %s\\n\", (char *) $_probe_arg2, (char *) $_probe_arg3", "delete 1", "continue",
                    "printf \"completion %d with status %d\\n\", $_probe_arg2, $_probe_arg3", "delete", "continue")
        server = subprocess.Popen([_PROGRAM, service], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), "waiting\n")
        arguments = ["gdb", "-batch", "-nx"] + [word for command in commands for word in ("-ex", command)]
        output = subprocess.run(arguments + ["--args", _PROGRAM, service, "127.0.0.1", "good morning"], timeout=200,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
        if "ptrace: Operation not permitted" in output:
            self.skipTest("no process may be traced here")
        self.assertIn("ACTIVE_CONNECTION_PENDING by connect\n", output)
        self.assertIn("completion 0 with status 0\n", output)
        self.assertIn("exited normally", output)


if __name__ == "__main__":
    python_main.main()
