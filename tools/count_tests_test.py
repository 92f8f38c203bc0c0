#!/usr/bin/env python3
"""Feeds count_tests event files as Bazel writes them, and checks the closing line."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

from tools import count_tests

_MIXED = """<testsuites><testsuite name="S">
<testcase name="Pass" status="run" result="completed" classname="S"/>
<testcase name="Fail" status="run" result="completed" classname="S"><failure message="x"/></testcase>
<testcase name="Skip" status="run" result="skipped" classname="S"><skipped message="a.cc:7&#x0A;no device"/></testcase>
<testcase name="DISABLED_Off" status="notrun" result="suppressed" classname="S"/>
<testcase name="RunByAnother" status="notrun" result="suppressed" classname="DISABLED_Failing"/>
</testsuite></testsuites>"""
_PASS = """<testsuites><testsuite name="S">
<testcase name="Pass" status="run" result="completed" classname="S"/>
</testsuite></testsuites>"""
_SCRIPT = """<testsuites><testsuite name="x" tests="1" failures="0" errors="0">
<testcase name="x" status="run" duration="0" time="0"></testcase></testsuite></testsuites>"""
_NO_CASE = """<testsuites tests="0"></testsuites>"""
_CRASH = """<testsuites><testsuite name="x" tests="1" failures="0" errors="1">
<testcase name="x" status="run"><error message="exited with error code 134"></error></testcase>
</testsuite></testsuites>"""


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self._events = [{"id": {"started": {}}, "started": {"command": "test"}}]

    def _path(self, name):
        return os.path.join(self._folder.name, name)

    def result(self, label, status, report=None, attempt=1):
        event = {"id": {"testResult": {"label": label, "run": 1, "shard": 1, "attempt": attempt}},
                 "testResult": {"status": status, "testActionOutput": []}}
        if report is not None:
            path = self._path("%d.xml" % len(self._events))
            with open(path, "w", encoding="utf-8") as out:
                out.write(report)
            event["testResult"]["testActionOutput"].append({"name": "test.xml", "uri": "file://" + path})
        self._events.append(event)

    def completed(self, label, success):
        event = {"id": {"targetCompleted": {"label": label}}, "completed": {}}
        if success:
            event["completed"]["success"] = True
        self._events.append(event)

    def finished(self, code):
        self._events.append({"id": {"buildFinished": {}}, "finished": {"exitCode": {"name": "X", "code": code}}})

    def count(self, *options, torn=0):
        path = self._path("events.json")
        text = "".join(json.dumps(event) + "\n" for event in self._events)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text[:len(text) - torn])
        return self.run_main(path, *options)

    def run_main(self, *arguments):
        printed = io.StringIO()
        before, sys.argv = sys.argv, ["count_tests.py", *arguments]
        try:
            with contextlib.redirect_stdout(printed):
                status = count_tests.main()
        finally:
            sys.argv = before
        lines = printed.getvalue().strip().split("\n")
        return status, lines[-1], lines[:-1]

    def test_cases_count_one_by_one(self):
        self.result("//a:mixed", "FAILED", _MIXED)
        self.finished(3)
        status, last, others = self.count()
        self.assertEqual((status, last), (1, "1 passed, 1 failed, 2 skipped"))
        self.assertIn("skipped: S.Skip: no device", others)
        self.assertIn("skipped: S.DISABLED_Off: disabled", others)
        self.assertIn("failed: //a:mixed: S.Fail", others)

    def test_runs_are_added_up(self):
        saved = self._path("1.count"), self._path("2.count")
        self.result("//a:mixed", "FAILED", _MIXED)
        self.finished(3)
        self.count("--save=" + saved[0])
        # The next run's reports replace this run's.
        del self._events[1:]
        self.result("//a:mixed", "PASSED", _PASS)
        self.finished(0)
        self.assertEqual(self.count("--save=" + saved[1])[:2], (0, "1 passed, 0 failed, 0 skipped"))
        status, last, others = self.run_main(*saved)
        self.assertEqual((status, last), (1, "2 passed, 1 failed, 2 skipped"))
        self.assertIn("failed: //a:mixed: S.Fail", others)

    def test_script_is_one_case(self):
        self.result("//a:script", "PASSED", _SCRIPT)
        self.finished(0)
        self.assertEqual(self.count()[:2], (0, "1 passed, 0 failed, 0 skipped"))

    def test_crash_is_one_failure(self):
        self.result("//a:crash", "FAILED", _CRASH)
        self.finished(3)
        status, last, others = self.count()
        self.assertEqual((status, last), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertIn("failed: //a:crash: exited with error code 134", others)

    def test_bad_end_after_good_cases_is_a_failure(self):
        self.result("//a:leak", "FAILED", _PASS)
        self.finished(3)
        self.assertEqual(self.count()[:2], (1, "1 passed, 1 failed, 0 skipped"))

    def test_timeout_without_report_is_a_failure(self):
        self.result("//a:slow", "TIMEOUT")
        self.finished(3)
        self.assertEqual(self.count()[:2], (1, "0 passed, 1 failed, 0 skipped"))

    def test_last_attempt_counts(self):
        self.result("//a:flaky", "FAILED", _MIXED, attempt=1)
        self.result("//a:flaky", "PASSED", _PASS, attempt=2)
        self.finished(0)
        self.assertEqual(self.count()[:2], (0, "1 passed, 0 failed, 0 skipped"))

    def test_target_that_does_not_build_is_a_failure(self):
        self.completed("//a:broken", False)
        self.completed("//a:fine", True)
        self.finished(1)
        self.assertEqual(self.count()[:2], (1, "0 passed, 1 failed, 0 skipped"))

    def test_run_that_breaks_before_any_target_is_a_failure(self):
        self.finished(1)
        self.assertEqual(self.count()[:2], (1, "0 passed, 1 failed, 0 skipped"))

    def test_package_that_does_not_load_beside_a_failed_test(self):
        self.result("//a:mixed", "FAILED", _MIXED)
        self.finished(1)
        status, last, others = self.count()
        self.assertEqual((status, last), (1, "1 passed, 2 failed, 2 skipped"))
        self.assertIn("failed: Bazel ended with exit code 1", others)

    def test_run_that_never_ends_is_a_failure(self):
        self.result("//a:fine", "PASSED", _PASS)
        self.assertEqual(self.count()[:2], (1, "1 passed, 1 failed, 0 skipped"))

    def test_torn_event_file_is_a_failure(self):
        self.result("//a:fine", "PASSED", _PASS)
        self.finished(0)
        status, last, others = self.count("--save=" + self._path("1.count"), torn=10)
        self.assertEqual((status, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("failed: no complete event file", others[-1])
        self.assertEqual(self.run_main(self._path("1.count"))[:2], (status, last))

    def test_missing_event_file_is_a_failure(self):
        saved = self._path("1.count")
        status, last, others = self.run_main(self._path("none.json"), "--save=" + saved)
        self.assertEqual((status, last), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertIn("none.json", others[-1])
        self.assertEqual(self.run_main(saved)[:2], (status, last))

    def test_missing_count_is_a_failure(self):
        self.assertEqual(self.run_main(self._path("none.count"))[:2], (1, "0 passed, 1 failed, 0 skipped"))

    def test_program_without_a_case_has_not_passed(self):
        self.result("//a:filtered", "PASSED", _NO_CASE)
        self.result("//a:other", "PASSED", _PASS)
        self.finished(0)
        self.assertEqual(self.count()[:2], (0, "1 passed, 0 failed, 0 skipped"))

    def test_test_run_without_a_case_is_a_failure(self):
        self.result("//a:filtered", "PASSED", _NO_CASE)
        self.finished(0)
        status, last, others = self.count()
        self.assertEqual((status, last), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertIn("failed: no test case was run", others)

    def test_build_without_a_case_is_fine(self):
        self._events[0]["started"]["command"] = "build"
        self.completed("//a:fine", True)
        self.finished(0)
        self.assertEqual(self.count()[:2], (0, "0 passed, 0 failed, 0 skipped"))

    def test_empty_selection_is_a_failure(self):
        self.finished(4)
        self.assertEqual(self.count()[:2], (1, "0 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
