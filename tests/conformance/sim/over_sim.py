#!/usr/bin/env python3
"""Runs those tests of a conformance program that need no peer over the simulation.

Usage: over_sim.py PROGRAM SOURCE...

The sources say which tests need a peer: those that call RunPair, themselves or through a function of their file. README.md
lists those that need no peer but cannot run here all the same.
"""

import os
import re
import sys

_FOLDER = "tests/conformance/sim"
_EXCEPTION = re.compile(r"^\| (dat|vipl) \| ([-\d, ]+) \| `(\w+\.\w+)` \| .+ \|$", re.M)
# A function or a test, from the first column to the brace there, or on one line.
_FUNCTION = re.compile(r"^(TEST\(\w+,\s*\w+\)|\w[^\n;{]*?\b(?P<name>\w+)\([^;{]*\)[^;{]*?) \{(?P<body>\n.*?^\}|[^\n]*\}$)",
                       re.M | re.S)


def alone(text):
    """The tests of a source that need no peer."""
    tests, bodies = {}, {}
    for function in _FUNCTION.finditer(text):
        test = re.match(r"TEST\((\w+),\s*(\w+)\)", function.group(1))
        if test:
            tests["%s.%s" % test.groups()] = function.group("body")
        else:
            bodies.setdefault(function.group("name"), []).append(function.group("body"))
    pairs, more = {"RunPair"}, set()
    while more != pairs:
        more, calls = set(pairs), re.compile(r"\b(?:%s)\(" % "|".join(sorted(pairs)))
        pairs |= {name for name, texts in bodies.items() if any(calls.search(body) for body in texts)}
    return [name for name, body in tests.items() if not calls.search(body)]


def exceptions(table):
    """(face, numbers, test) of each row."""
    return [(face, [int(number) for number in re.findall(r"\d+", numbers)], test)
            for face, numbers, test in _EXCEPTION.findall(table)]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def chosen(sources):
    """The tests of these files that run here."""
    left_out = {test for _, _, test in exceptions(read(_FOLDER + "/README.md"))}
    return [test for source in sources for test in alone(read(source)) if test not in left_out]


def main(program, sources):
    tests = chosen(sources)
    if not tests:
        sys.exit("no test of %s runs over sim" % program)
    # All symbols are bound at once, so that an engine that lacks one does not load.
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(_FOLDER), LD_BIND_NOW="1")
    os.execve(program, [program, "--wire=sim", "--gtest_filter=" + ":".join(tests)], environment)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
