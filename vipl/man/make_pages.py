#!/usr/bin/env python3
"""Makes the manual pages of section 3 from functions.txt and the texts NAME.3.in.

usage: make_pages.py FOLDER

FOLDER receives NAME.3 for each page of the table, and for every other function a page that refers to the one it stands on. A
text has the lines @SYNOPSIS@ and @RETURN VALUE@ where those two sections belong; NAME and the title come from the table.
"""

import os
import re
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_WIDTH = 76


class Function:
    def __init__(self, result, name, parameters):
        self.result, self.name, self.parameters = result, name, parameters
        self.codes = []  # (code, why)


class Page:
    def __init__(self, name, subject):
        self.name, self.subject = name, subject
        self.functions = []


def read_table(path=os.path.join(_HERE, "functions.txt")):
    """The pages in the table's order. A line that means nothing is a ValueError."""
    pages = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            page = re.fullmatch(r"page (\w+) +(\S.*)", line)
            function = re.fullmatch(r"(\w+) (\w+)\((.*)\)", line)
            code = re.fullmatch(r"  (VIP_\w+) +(\S.*)", line)
            if not line or line.startswith("#"):
                continue
            if page:
                pages.append(Page(*page.groups()))
            elif function and pages:
                result, name, parameters = function.groups()
                pages[-1].functions.append(Function(result, name, parameters.split(", ")))
            elif code and pages and pages[-1].functions:
                pages[-1].functions[-1].codes.append(code.groups())
            else:
                raise ValueError("%s:%d: %s" % (path, number, line))
    return pages


def _synopsis(page):
    lines = [".SH SYNOPSIS", ".nf", ".B #include <vipl.h>"]
    for function in page.functions:
        lines += [".PP"]
        begin = "%s %s(" % (function.result, function.name)
        text, indent = begin, " " * len(begin)
        for i, parameter in enumerate(function.parameters):
            piece = parameter + (");" if i + 1 == len(function.parameters) else ", ")
            if i and len(text) + len(piece.rstrip()) > _WIDTH:
                lines.append(".B " + _quoted(text.rstrip()))
                text = indent
            text += piece
        lines.append(".B " + _quoted(text))
    return lines + [".fi"]


def _quoted(text):
    return '"%s"' % text.replace('"', '""')


def _returns(page):
    lines = [".SH RETURN VALUE"]
    for function in page.functions:
        if not function.codes:
            continue
        if len(page.functions) > 1:
            lines.append(".SS " + function.name)
        for code, why in function.codes:
            lines += [".TP", ".B " + code, why[0].upper() + why[1:] + "."]
    return lines


def make(page, text):
    """The page, given the text between the generated sections."""
    sections = {"@SYNOPSIS@": _synopsis(page), "@RETURN VALUE@": _returns(page)}
    names = ", ".join(function.name for function in page.functions)
    lines = ['.TH %s 3 "" "Viaduct" "VI Provider Library"' % page.name, ".SH NAME", "%s \\- %s" % (names, page.subject)]
    for line in text.splitlines():
        lines += sections.pop(line, [line])
    if sections:
        raise ValueError("%s.3.in lacks %s" % (page.name, " and ".join(sections)))
    return "\n".join(lines) + "\n"


def pages(table):
    """Yields (file name, content) of every page and every reference to one."""
    for page in table:
        with open(os.path.join(_HERE, page.name + ".3.in"), encoding="utf-8") as text:
            yield page.name + ".3", make(page, text.read())
        for function in page.functions:
            if function.name != page.name:
                yield function.name + ".3", ".so man3/%s.3\n" % page.name


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, content in pages(read_table()):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as out:
            out.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
