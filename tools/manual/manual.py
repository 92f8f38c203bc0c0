"""Makes the manual pages of section 3 from a folder's functions.txt and texts NAME.3.in.

The output has NAME.3 for each page of the table, and for every other function a page that refers to the page with the function.
A text has the lines @SYNOPSIS@ and @RETURN VALUE@ where those two sections belong; NAME and the title come from the table.
"""

import os
import re
import sys

_WIDTH = 76


class Function:
    def __init__(self, result, name):
        self.result, self.name = result, name
        self.forms = []  # (version or "", parameters)
        self.codes = []  # (code, why)

    @property
    def parameters(self):
        """The parameters of a function with one form."""
        (_, parameters), = self.forms
        return parameters

    def in_version(self, version):
        """The parameters in that version, or None."""
        for each, parameters in self.forms:
            if each in ("", version):
                return parameters
        return None


class Page:
    def __init__(self, name, subject):
        self.name, self.subject = name, subject
        self.functions = []


class Manual:
    """What the pages of one folder have in common.

    title: of the book. headers: what #include lines name, (header, its version or ""). prefix: of the return codes.
    preface: lines that begin RETURN VALUE.
    """

    def __init__(self, folder, title, headers, prefix, preface=()):
        self.folder, self.title, self.headers = folder, title, headers
        self._prefix, self._preface = prefix, list(preface)

    def read_table(self):
        """The pages in the table's order. A line that means nothing is a ValueError."""
        path = os.path.join(self.folder, "functions.txt")
        pages = []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip("\n")
                page = re.fullmatch(r"page (\w+) +(\S.*)", line)
                function = re.fullmatch(r"(\w+) (\w+)\((.*)\)(?: \[(\S+)\])?", line)
                code = re.fullmatch(r"  (%s\w+) +(\S.*)" % self._prefix, line)
                if not line or line.startswith("#"):
                    continue
                if page:
                    pages.append(Page(*page.groups()))
                elif function and pages:
                    result, name, parameters, version = function.groups()
                    functions = pages[-1].functions
                    if not functions or functions[-1].name != name:
                        functions.append(Function(result, name))
                    functions[-1].forms.append((version or "", parameters.split(", ")))
                elif code and pages and pages[-1].functions:
                    pages[-1].functions[-1].codes.append(code.groups())
                else:
                    raise ValueError("%s:%d: %s" % (path, number, line))
        return pages

    def _synopsis(self, page):
        lines = [".SH SYNOPSIS", ".nf"]
        for header, version in self.headers:
            include = "#include <%s>" % header
            if not version:
                lines.append(".B " + include)
            elif any(function.in_version(version) for function in page.functions):
                lines.append(".BR %s %s" % (_quoted(include), _quoted("   " + version)))
        for function in page.functions:
            for version, parameters in function.forms:
                lines += [".PP"]
                if version:
                    lines += ["A macro:" if version == "macro" else "In %s only:" % version]
                lines += _declaration(function, parameters)
        return lines + [".fi"]

    def _returns(self, page):
        lines = [".SH RETURN VALUE"] + self._preface
        for function in page.functions:
            if not function.codes:
                continue
            if len(page.functions) > 1:
                lines.append(".SS " + function.name)
            for code, why in function.codes:
                lines += [".TP", ".B " + code, _sentence(why)]
        return lines

    def make(self, page, text):
        """The page, given the text between the generated sections."""
        sections = {"@SYNOPSIS@": self._synopsis(page), "@RETURN VALUE@": self._returns(page)}
        names = ", ".join(function.name for function in page.functions)
        lines = ['.TH %s 3 "" "Viaduct" "%s"' % (page.name, self.title), ".SH NAME", "%s \\- %s" % (names, page.subject)]
        for line in text.splitlines():
            lines += sections.pop(line, [line])
        if sections:
            raise ValueError("%s.3.in lacks %s" % (page.name, " and ".join(sections)))
        return "\n".join(lines) + "\n"

    def pages(self, table):
        """Yields (file name, content) of every page and every reference to one."""
        for page in table:
            with open(os.path.join(self.folder, page.name + ".3.in"), encoding="utf-8") as text:
                yield page.name + ".3", self.make(page, text.read())
            for function in page.functions:
                if function.name != page.name:
                    yield function.name + ".3", ".so man3/%s.3\n" % page.name

    def main(self, usage):
        if len(sys.argv) != 2:
            print(usage.strip(), file=sys.stderr)
            return 2
        os.makedirs(sys.argv[1], exist_ok=True)
        for name, content in self.pages(self.read_table()):
            with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as out:
                out.write(content)
        return 0


def _sentence(why):
    """The text as a sentence; an identifier of the interface at its beginning keeps its letters."""
    return (why if "_" in why.split()[0] else why[0].upper() + why[1:]) + "."


def _declaration(function, parameters):
    begin = "%s %s(" % (function.result, function.name)
    lines, text, indent = [], begin, " " * len(begin)
    for i, parameter in enumerate(parameters):
        piece = parameter + (");" if i + 1 == len(parameters) else ", ")
        if i and len(text) + len(piece.rstrip()) > _WIDTH:
            lines.append(".B " + _quoted(text.rstrip()))
            text = indent
        text += piece
    return lines + [".B " + _quoted(text)]


def _quoted(text):
    return '"%s"' % text.replace('"', '""')
