#!/usr/bin/env python3
"""Counts test cases in Bazel's build event files and prints "N passed, N failed, N skipped" as the last line.

Usage: count_tests.py [--save=FILE] EVENTS_FILE...
       count_tests.py SAVED_FILE.count...

A later run puts its reports in the place of an earlier one's, so several runs are counted one by one, with
--save=FILE.count, and added up at the end.

A program that reports its cases (GoogleTest, build_rules/python_main.py) counts by case, anything else as one. A target that does not build, a program that ends
badly although each of its cases passed, a test run without a case, a run that Bazel gave up for another reason and one whose
event file or saved count is missing or torn are one failure each. A suite that is disabled as a whole is none: a program
runs such tests itself, to see them fail.
Reports of earlier runs are never read: only what the events of these runs name. The exit status is 1 if anything
failed.
"""

import argparse
import collections
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# Bazel's exit codes for a run whose events say what has failed, if anything: success, a build failure, failed
# tests. (4, no tests selected, is a failure: somebody meant to run some.)
_EXPLAINED = {0, 1, 3}


class Run:
    """What the event file of one run says."""

    def __init__(self, path):
        self.command = None
        self.results = {}  # (label, run, shard) -> the last attempt's
        self.broken = set()
        self.exit_code = None
        self.torn = None  # why not all of it could be read
        try:
            with open(path, encoding="utf-8") as events:
                for line in events:
                    self._add(json.loads(line))
        except (OSError, ValueError) as error:
            self.torn = error
        if self.torn is None and self.exit_code is None:
            self.torn = path + " has no end"

    def _add(self, event):
        identity = event.get("id", {})
        if "testResult" in identity and "testResult" in event:
            key = identity["testResult"]
            self.results[key["label"], key.get("run", 1), key.get("shard", 1)] = event["testResult"]
        elif "targetCompleted" in identity:
            if "aborted" in event or not event.get("completed", {}).get("success"):
                self.broken.add(identity["targetCompleted"]["label"])
        elif "started" in event:
            self.command = event["started"].get("command")
        elif "finished" in event:
            self.exit_code = event["finished"].get("exitCode", {}).get("code", 0)


class Count:
    """Cases of any number of runs."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = collections.Counter()

    def add_case(self, label, case):
        suite = case.get("classname")
        skip = case.find("skipped")
        error = case.find("error")
        if suite is None and error is not None:
            # Bazel's own report about a program that wrote none.
            self.failures.append("%s: %s" % (label, error.get("message", "no report")))
            return
        if case.get("status") == "notrun" and suite and suite.startswith("DISABLED_"):
            return
        name = "%s.%s" % (suite, case.get("name")) if suite else label
        if error is not None or case.find("failure") is not None:
            self.failures.append("%s: %s" % (label, name))
        elif case.get("status") == "notrun":
            self.skips["%s: disabled" % name] += 1
        elif skip is not None or case.get("result") == "skipped":
            reason = (skip.get("message") if skip is not None else None) or "no reason given"
            # GoogleTest puts "file:line" on the first line.
            self.skips["%s: %s" % (name, reason.strip().split("\n")[-1])] += 1
        else:
            self.passed += 1

    def cases(self):
        return self.passed + len(self.failures) + sum(self.skips.values())

    def add_result(self, label, result):
        failures, reported = len(self.failures), False
        for output in result.get("testActionOutput", []):
            uri = output.get("uri", "")
            if output["name"] == "test.xml" and uri.startswith("file://"):
                try:
                    root = ElementTree.parse(urllib.parse.unquote(uri[len("file://"):])).getroot()
                except (OSError, ElementTree.ParseError):
                    continue
                reported = True  # even if a filter or a shard has left no case in it
                for case in root.iter("testcase"):
                    self.add_case(label, case)
        if result.get("status") not in ("PASSED", "FLAKY"):
            if len(self.failures) == failures:
                self.failures.append("%s: ended with %s" % (label, result.get("status", "no status")))
        elif not reported:
            self.passed += 1

    def save(self, path):
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"passed": self.passed, "failures": self.failures, "skips": self.skips}, out)

    def add_saved(self, path):
        try:
            with open(path, encoding="utf-8") as saved:
                other = json.load(saved)
        except (OSError, ValueError) as error:
            self.failures.append("no count of a run: %s" % error)
            return
        self.passed += other["passed"]
        self.failures += other["failures"]
        self.skips.update(other["skips"])

    def add_run(self, path):
        run, cases, failures = Run(path), self.cases(), len(self.failures)
        for (label, _, _), result in sorted(run.results.items()):
            self.add_result(label, result)
        unbuilt = run.broken - {label for label, _, _ in run.results}
        for label in sorted(unbuilt):
            self.failures.append("%s: did not build" % label)
        if run.torn is not None:
            self.failures.append("no complete event file: %s" % run.torn)
        # A package that does not load is not a broken target, and may come together with a failed test.
        elif (run.exit_code not in _EXPLAINED or (run.exit_code == 1 and not unbuilt) or
              (run.exit_code == 3 and len(self.failures) == failures)):
            self.failures.append("Bazel ended with exit code %s" % run.exit_code)
        elif run.command == "test" and self.cases() == cases:
            self.failures.append("no test case was run")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--save", metavar="FILE")
    arguments.add_argument("files", nargs="+")
    options = arguments.parse_args()
    count = Count()
    for path in options.files:
        if path.endswith(".count"):
            count.add_saved(path)
        else:
            count.add_run(path)
    if options.save:
        count.save(options.save)
    for skip, times in sorted(count.skips.items()):
        print("skipped: %s%s" % (skip, " (%d times)" % times if times > 1 else ""))
    for failure in count.failures:
        print("failed: " + failure)
    print("%d passed, %d failed, %d skipped" % (count.passed, len(count.failures), sum(count.skips.values())))
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())
