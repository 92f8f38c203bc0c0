"""A test's way into tools/lab."""

import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

_NOT_RUN = 125
_NOT_HERE = "tools/lab: not here: "


def run(driver, script, net="one", seconds=200):
    """(exit status, output) of `script` in the lab; skips the test with the reason where there can be no lab."""
    done = subprocess.run(["tools/lab", "--net=" + net, "--seconds=%d" % seconds, driver, script], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == _NOT_RUN and _NOT_HERE in said:
        raise unittest.SkipTest(said[said.rindex(_NOT_HERE) + len(_NOT_HERE):])
    if done.returncode == _NOT_RUN:
        raise AssertionError(done.stdout.decode(errors="replace") + said)
    return done.returncode, done.stdout.decode(errors="replace")


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
        self.ends[test] = "skipped", reason

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


def main():
    """unittest.main, and a report in which a skipped test is one, with its reason."""
    program = unittest.main("__main__", exit=False, verbosity=2,
                            testRunner=unittest.TextTestRunner(verbosity=2, resultclass=_Result))
    report = os.environ.get("XML_OUTPUT_FILE")
    if report:
        suite = ElementTree.Element("testsuite", name="lab")
        for test, end in program.result.ends.items():
            suite_name, name = test.id().split(".")[-2:]
            case = ElementTree.SubElement(suite, "testcase", classname=suite_name, name=name)
            if end is not None:
                kind, text = end
                ElementTree.SubElement(case, kind, message="".join(c for c in text if c.isprintable() or c == "\n")[:20000])
        ElementTree.ElementTree(suite).write(report, encoding="utf-8", xml_declaration=True)
    sys.exit(not program.result.wasSuccessful())
