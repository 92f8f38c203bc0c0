"""Rules for every file and folder of the project: length, README, no path of somebody's machine, nothing left to do, no
skip that nobody counts."""

import os
import re

from tests.layering import tree

MAX_LINES = 900

_SOURCES = (".c", ".cc", ".h")
_TEXT_NAMES = ("BUILD", "WORKSPACE", "LICENSE", "packages")
_TEXT = _SOURCES + (".md", ".py", ".bzl", ".sh", ".map", ".conf", ".in", ".pc", ".3", ".7", ".1", ".5", ".8")

# Written in pieces, so that this file does not match its own patterns.
_MACHINE_PATH = re.compile(r"(?<![\w.$}~])/(?:ho" r"me/\w|ro" r"ot/|wo" r"rk/|Us" r"ers/\w|us" r"r/local/\w)")
_LEFT_TO_DO = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")

# unittest's own main program reports a skipped test as one that passed.
_PYTHON_SKIP = re.compile(r"\b(skipTest|SkipTest|skipIf|skipUnless)\b")
_PYTHON_MAIN = "unittest" ".main()"


def _is_text(path):
    name = os.path.basename(path)
    return name in _TEXT_NAMES or name.endswith(_TEXT) or "." not in name


def _has_readme(top, folder):
    """True also for folders of public headers, which the README above their include folder describes."""
    return "include" in folder.split("/") or os.path.isfile(os.path.join(top, folder, "README.md"))


def check(top):
    """The violations in the tree at `top`."""
    problems, folders = [], set()
    for path in tree.files(top):
        if not _is_text(path):
            continue
        with open(os.path.join(top, path), encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
        if "\0" in text:
            continue
        lines = text.split("\n")
        if path.endswith(_SOURCES):
            folders.add(os.path.dirname(path))
            if text.count("\n") > MAX_LINES:
                problems.append("%s: %d lines, more than %d" % (path, text.count("\n"), MAX_LINES))
        if path.endswith(".py") and _PYTHON_SKIP.search(text) and _PYTHON_MAIN in text:
            problems.append("%s: skips behind %s; python_main.main() counts them" % (path, _PYTHON_MAIN))
        for number, line in enumerate(lines, 1):
            found = _MACHINE_PATH.search(line)
            if found:
                problems.append("%s:%d: a path of one machine: %s" % (path, number, found.group(0)))
            found = _LEFT_TO_DO.search(line)
            if found:
                problems.append("%s:%d: left to do: %s" % (path, number, line.strip()))
    problems += ["%s: no README.md" % folder for folder in sorted(folders) if not _has_readme(top, folder)]
    return problems
