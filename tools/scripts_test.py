#!/usr/bin/env python3
"""Runs test, .ci/run, fuzz, coverage, compile_commands, style, tidy and bare_system in a small copy of the repository;
Bazel, setup and the checkers of style are stand-ins."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

# Logs its arguments, and then runs the shell code in BAZEL_DOES.
_BAZEL = """#!/bin/sh
echo "$*" >>"$LOG"
eval "$BAZEL_DOES"
"""
_SETUP = """#!/bin/sh
echo "setup $*" >>"$LOG"
"""
_CHECKER = """#!/bin/sh
echo "${0##*/} $*" >>"$LOG"
[ "${0##*/}" != "$FINDS" ]
"""
_SCRIPTS = ("bare_system", "compile_commands", "count_tests.py", "coverage", "common.sh", "fuzz", "shell.py", "style", "test",
            "tidy")
_REPORT = "bazel-out/_coverage/_coverage_report.dat"


def _ends(pid):
    """Whether that process ends within ten seconds, or is only waited for."""
    for _ in range(1000):
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


class Scripts(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._here = folder.name
        for name in ("tools", "temporary files"):
            os.mkdir(os.path.join(self._here, name))
        for name in _SCRIPTS:
            shutil.copy("tools/" + name, self._here + "/tools")
        shutil.copy("tools/packages", self._here + "/tools")
        os.mkdir(self._here + "/.ci")
        shutil.copy(".ci/run", self._here + "/.ci")
        self._write("tools/setup", _SETUP)
        self._write("bazel", _BAZEL)
        for checker in ("clang-format", "shellcheck"):
            self._write("bin/" + checker, _CHECKER)

    def _write(self, path, text):
        path = os.path.join(self._here, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o755)

    def _run(self, script, *arguments, bazel="true", finds=""):
        environment = dict(os.environ, VIADUCT_BAZEL=self._here + "/bazel", LOG=self._here + "/log", BAZEL_DOES=bazel, FINDS=finds,
                           XDG_CACHE_HOME=self._here + "/cache", TMPDIR=self._here + "/temporary files",
                           PATH=self._here + "/bin:" + os.environ["PATH"])
        result = subprocess.run([os.path.join(self._here, "tools", script), *arguments], env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return result.returncode, result.stdout

    def _calls(self):
        if not os.path.exists(self._here + "/log"):
            return []
        with open(self._here + "/log", encoding="utf-8") as log:
            return log.read().splitlines()

    def _bazel_arguments(self):
        return self._calls()[-1].split()

    def test_help_does_nothing(self):
        for script in ("bare_system", "compile_commands", "coverage", "fuzz", "style", "test", "tidy"):
            with self.subTest(script):
                code, output = self._run(script, "--help")
                self.assertEqual(code, 0, output)
                self.assertIn("sage: tools/" + script, output)
        code, output = self._run("../.ci/run", "--help")
        self.assertEqual(code, 0, output)
        self.assertTrue(output.startswith("Usage: .ci/run\n"), output)
        self.assertEqual(self._calls(), [])

    def test_wrong_option_installs_nothing(self):
        fuzz = "tools/fuzz [SECONDS [LABEL...]]"
        for script, option, usage in (("tidy", "--nonsense", "tools/tidy [PATTERN]..."), ("style", "--nonsense", "tools/style [--fix]"),
                                      ("../.ci/run", "--nonsense", ".ci/run"), ("fuzz", "--nonsense", fuzz), ("fuzz", "0", fuzz),
                                      ("fuzz", "00", fuzz)):
            with self.subTest(script, option=option):
                self.assertEqual(self._run(script, option), (2, "Usage: %s\n" % usage))
        self.assertEqual(self._calls(), [])

    def test_style_checks_sources_and_scripts(self):
        self._write("a/b.cc", "")
        self._write("a/c.h", "")
        for arguments, format_options in (((), "--dry-run --Werror"), (("--fix",), "-i")):
            with self.subTest(arguments=arguments):
                self.assertEqual(self._run("style", *arguments), (0, ""))
                calls = {call.split()[0]: call for call in self._calls()}
                self.assertTrue(calls["clang-format"].startswith("clang-format %s " % format_options), calls)
                self.assertEqual(set(calls["clang-format"].split()[-2:]), {"./a/b.cc", "./a/c.h"})
                self.assertLessEqual({".ci/run", "tools/style", "tools/common.sh"}, set(calls["shellcheck"].split()))

    def test_what_style_finds_is_a_failure(self):
        self._write("a/b.cc", "")
        for checker in ("clang-format", "shellcheck"):
            with self.subTest(checker):
                self.assertEqual(self._run("style", finds=checker), (1, ""))

    def test_tidy_checks_what_is_compiled(self):
        self._write("bin/run-clang-tidy", _CHECKER)
        for finds, code in (("", 0), ("run-clang-tidy", 1)):
            self.assertEqual(self._run("tidy", "a/b", "c", bazel="echo '{}'", finds=finds), (code, "compile_commands.json: 0 files\n"))
            self.assertRegex(self._calls()[-1], r"\Arun-clang-tidy -p \. .* a/b c\Z")
        code, output = self._run("tidy", bazel="exit 7")
        self.assertEqual((code, self._calls()[-1].split()[0]), (1, "aquery"), output)

    def test_cache_of_one_compiler_does_not_grow_for_ever(self):
        for folder in ("bazel-other", "fuzz"):
            self._write("cache/viaduct/%s/file" % folder, "")
        self._run("test")
        cache = self._here + "/cache/viaduct/"
        mine, = [name for name in os.listdir(cache) if name != "fuzz"]
        self.assertRegex(mine, r"\Abazel-[0-9a-f]{12}\Z")
        self.assertIn("--disk_cache=" + cache + mine, self._bazel_arguments())
        for size, left in ((400, "0123"), (399, "23")):
            for i in range(4):
                self._write("cache/viaduct/%s/%d" % (mine, i), 100 * "x")
                os.utime("%s%s/%d" % (cache, mine, i), (1e9 + i, 1e9))
            subprocess.run(["sh", "-c", ". tools/common.sh; viaduct_prune %s %d" % (cache + mine, size)], cwd=self._here, check=True)
            self.assertEqual("".join(sorted(os.listdir(cache + mine))), left)

    def test_all_targets_are_run_unless_some_are_named(self):
        for arguments, targets in ((("-c", "opt", "--runs_per_test=3"), ["//..."]), (("--config", "asan"), ["//..."]),
                                   (("//a:b", "-k"), []), (("a/...",), []), ((), ["//..."])):
            for script in ("test", "coverage"):
                with self.subTest(script=script, arguments=arguments):
                    self._run(script, *arguments)
                    self.assertEqual([word for word in self._bazel_arguments() if word == "//..."], targets)
                    self.assertLessEqual(set(arguments), set(self._bazel_arguments()))

    def test_long_tests_and_those_of_the_lab(self):
        self._write("bin/id", "#!/bin/sh\necho 0\n")
        for arguments, setups, chosen, targets in (
                (("--all",), ["setup build test ci"], {"--test_tag_filters=", "--test_env=VIADUCT_LONG=1", "--test_env=LAB_KERNEL"}, ["//..."]),
                (("--lab",), ["setup build test", "setup lab"], {"--test_tag_filters=lab"}, ["//tests/lab/..."]),
                (("--lab", "//a:b"), ["setup build test", "setup lab"], {"--test_tag_filters=lab"}, ["//a:b"]),
                (("//a:b", "--lab"), ["setup build test", "setup lab"], {"--test_tag_filters=lab"}, ["//a:b"])):
            with self.subTest(arguments):
                self._run("test", *arguments)
                *setup, _ = self._calls()
                self.assertEqual(setup[-len(setups):], setups)
                self.assertLessEqual(chosen | {"--keep_going"}, set(self._bazel_arguments()))
                self.assertEqual([word for word in self._bazel_arguments() if word.startswith("//")], targets)
        self.assertEqual(self._run("test", "--all", "--lab"), (2, "Usage: tools/test [--all | --lab] [BAZEL OPTION | TARGET]...\n"))
        self._write("bin/id", "#!/bin/sh\necho 1000\n")
        code, output = self._run("test", "--lab")
        self.assertEqual(code, 1)
        self.assertIn("run it as root", output)

    def test_sandboxes_are_in_memory_where_there_is_room(self):
        writable = os.access("/dev/shm", os.W_OK)
        for free, expected in ((3000000, ["--sandbox_base=/dev/shm"] if writable else []), (64000, [])):
            self._write("bin/df", "#!/bin/sh\necho Header; echo tmpfs 1 1 %d\n" % free)
            for script in ("test", "coverage"):
                with self.subTest(script=script, free=free):
                    self._run(script)
                    self.assertEqual([word for word in self._bazel_arguments() if word.startswith("--sandbox")], expected)
        self._write("bin/df", "#!/bin/sh\necho Header; echo tmpfs 1 1 3000000\n")
        self._write("bin/findmnt", "#!/bin/sh\necho rw,nosuid,nodev,noexec,relatime\n")
        self._run("test")
        self.assertFalse([word for word in self._bazel_arguments() if word.startswith("--sandbox")])
        self._write("bin/findmnt", "#!/bin/sh\necho rw,nosuid,nodev\n")
        self._write("bin/df", "#!/bin/sh\nexit 1\n")
        self._run("test")
        self.assertFalse([word for word in self._bazel_arguments() if word.startswith("--sandbox")])

    def test_what_is_installed_belongs_to_a_tests_input(self):
        hosts = []
        for version in ("1", "1", "2"):
            self._write("bin/dpkg-query", '#!/bin/sh\necho "$*" | grep -q tshark && echo tshark %s\n' % version)
            self._run("test")
            hosts += [word for word in self._bazel_arguments() if word.startswith("--test_env=HOST_PACKAGES=")]
        self.assertEqual(len(hosts), 3)
        self.assertEqual(hosts[0], hosts[1])
        self.assertNotEqual(hosts[0], hosts[2])

    def test_interrupted_test_leaves_nothing_and_counts_nothing(self):
        for name, code in (("INT", 130), ("TERM", 143), ("HUP", 143)):
            with self.subTest(name):
                self.assertEqual(self._run("test", bazel="kill -%s $PPID; exit 8" % name), (code, ""))
                self.assertEqual(os.listdir(self._here + "/temporary files"), [])

    def test_test_whose_bazel_cannot_start_has_failed(self):
        code, output = self._run("test", bazel="echo no Java >&2; exit 37")
        self.assertEqual((code, output.splitlines()[0], output.splitlines()[-1]),
                         (1, "no Java", "0 passed, 1 failed, 0 skipped"))

    def test_stage_that_died_is_in_the_total(self):
        # The first stage has one test; the others' Bazel is killed before, or while, it writes its events.
        events = r"""
            for word; do case $word in --build_event_json_file=*) file=${word#*=} ;; esac; done
            case $file in
              */test.json) echo '{"started": {"command": "test"}, "id": {}}' >"$file"
                echo '{"id": {"testResult": {"label": "//a:b"}}, "testResult": {"status": "PASSED"}}' >>"$file"
                echo '{"id": {}, "finished": {"exitCode": {}}}' >>"$file" ;;
              */asan.json) printf '{"id": {"tes' >"$file"; exit 37 ;;
              */*.json) exit 37 ;;
            esac"""
        code, output = self._run("../.ci/run", bazel=events)
        self.assertEqual((code, output.splitlines()[-1]), (1, "1 passed, 5 failed, 0 skipped"), output)
        self._write("bin/shellcheck", "#!/bin/sh\nexit 1\n")
        code, output = self._run("../.ci/run", bazel=events)
        self.assertEqual((code, output.splitlines()[-1]), (1, "1 passed, 6 failed, 0 skipped"), output)
        self._write("tools/setup", "#!/bin/sh\nexit 1\n")
        code, output = self._run("../.ci/run", bazel=events)
        self.assertEqual((code, output.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), output)
        self.assertEqual(self._calls()[-1], "shutdown")
        self.assertEqual(os.listdir(self._here + "/temporary files"), [])

    def test_fuzzers_that_cannot_be_listed_are_a_failure(self):
        code, output = self._run("fuzz", bazel="echo no such package >&2; exit 7")
        self.assertEqual((code, output), (1, "no such package\n"))

    def test_no_fuzzers_are_a_failure(self):
        self.assertEqual(self._run("fuzz"), (1, "tools/fuzz: no fuzzers\n"))

    def test_fuzzer_that_finds_something_is_a_failure(self):
        self._write("outputs/a/x_fuzz", '#!/bin/sh\necho "fuzzing $*"\nexit 77\n')
        code, output = self._run("fuzz", "3", bazel='case $1 in query) echo //a:x_fuzz ;; info) echo %s/outputs ;; esac' %
                                 self._here)
        self.assertEqual(code, 1)
        self.assertIn("==== //a:x_fuzz\nfuzzing -max_total_time=3 ", output)

    def test_what_takes_long_ends_with_its_script(self):
        bazel = "case $1 in query) echo //a:x_fuzz ;; info) echo %s/outputs ;; aquery) echo '{}' ;; esac" % self._here
        for script, program in (("fuzz", "outputs/a/x_fuzz"), ("tidy", "bin/run-clang-tidy")):
            for name, code in (("INT", 130), ("TERM", 143), ("HUP", 143)):
                self._write(program, '#!/bin/sh\nsleep 600 &\necho $$ $! >"%s/pids"\nkill -%s $PPID\nwait\n' % (self._here, name))
                with self.subTest(script, name=name):
                    self.assertEqual(self._run(script, bazel=bazel)[0], code)
                    with open(self._here + "/pids", encoding="utf-8") as line:
                        for pid in line.read().split():
                            self.assertTrue(_ends(pid), pid)

    def test_coverage_of_a_build_that_failed_shows_no_earlier_report(self):
        self._write(_REPORT, "SF:a/b.cc\nDA:1,1\nend_of_record\n")
        code, output = self._run("coverage", bazel="exit 1")
        self.assertEqual((code, output), (1, "tools/coverage: no report\n"))

    def test_coverage_of_a_test_that_failed_is_shown(self):
        report = 'mkdir -p bazel-out/_coverage; printf "SF:a/b.cc\\nDA:1,1\\nDA:2,0\\n" >%s; exit 3' % _REPORT
        code, output = self._run("coverage", bazel=report)
        self.assertEqual(code, 3)
        self.assertIn(" 50.0%      1 of      2  everything\n", output)

    def test_compilations_that_cannot_be_listed_are_a_failure(self):
        code, output = self._run("compile_commands", bazel="echo no such package >&2; exit 7")
        self.assertEqual((code, output), (7, "no such package\ntools/compile_commands: no list of compilations\n"))
        self.assertFalse(os.path.exists(self._here + "/compile_commands.json"))

    def test_compilations_are_written(self):
        action = '{"actions": [{"arguments": ["gcc", "-MD", "-MF", "x.d", "-c", "a/b.cc", "-o", "b.o"]}]}'
        self.assertEqual(self._run("compile_commands", bazel="echo '%s'" % action), (0, "compile_commands.json: 1 files\n"))
        self.assertEqual(self._calls()[0], "setup build test")
        with open(self._here + "/compile_commands.json", encoding="utf-8") as written:
            self.assertIn('"a/b.cc"', written.read())


if __name__ == "__main__":
    unittest.main()
