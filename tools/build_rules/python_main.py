"""The main program of a Python test: unittest's, with a report in which each test case is one case.

Bazel's own report of a program that writes none has one case, which has passed if the exit status is 0. unittest's exit status
is 0 if everything was skipped.
"""

import os
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree


class _Result(unittest.TextTestResult):
    """Notes for each test what became of it: None, or a kind of end and its text."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ends = {}

    def startTest(self, test):
        super().startTest(test)
        self.ends[test] = None

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        test = getattr(test, "test_case", test)  # of a subtest
        self.ends[test] = self.ends.get(test) or ("skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.ends[test] = "failure", str(err[1])

    def addError(self, test, err):
        super().addError(test, err)
        self.ends[test] = "error", str(err[1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.ends[test] = "failure", "%s: %s" % (subtest, err[1])


def _names(identity):
    """(suite, case) of "module.Suite.case", or of "setUpClass (module.Suite)"."""
    of_class = re.fullmatch(r"(\w+) \((?:.*\.)?(\w+)\)", identity)
    return (of_class.group(2), of_class.group(1)) if of_class else tuple(identity.split(".")[-2:])


def _write(ends, path):
    suite = ElementTree.Element("testsuite", name=os.environ.get("TEST_TARGET", "unittest"))
    for test, end in ends.items():
        suite_name, name = _names(test.id())
        case = ElementTree.SubElement(suite, "testcase", classname=suite_name, name=name)
        if end is not None:
            kind, text = end
            ElementTree.SubElement(case, kind, message="".join(c for c in text if c.isprintable() or c == "\n")[:20000])
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main():
    """Takes the place of unittest.main. A program without a test has failed."""
    program = unittest.main("__main__", exit=False, verbosity=2,
                            testRunner=unittest.TextTestRunner(verbosity=2, resultclass=_Result))
    if os.environ.get("XML_OUTPUT_FILE"):
        _write(program.result.ends, os.environ["XML_OUTPUT_FILE"])
    sys.exit(not program.result.wasSuccessful() or not program.result.ends)
