#!/usr/bin/env python3
"""Bazel's two ways of keeping the layers fail on a seeded violation: visibility, and clang's layering_check.

The project's own WORKSPACE, BUILD, .bazelrc and rules are copied into a workspace of three packages, which a Bazel server of
its own builds. gcc with visibility alone accepts a header that a target uses without naming its library, which is why
layering_check is there; that is tested too.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

from tests.layering import tree

_LOW = """
cc_library(name = "low", hdrs = ["low.h"], visibility = ["//:users_of_verbs"])
cc_library(name = "low_user", hdrs = ["low_user.h"], visibility = ["//:users_of_verbs"], deps = [":low"])
"""
_HIGH = """
cc_library(name = "high", hdrs = ["high.h"], visibility = ["//:users_of_core"])
cc_library(name = "good", srcs = ["good.cc"], deps = ["//verbs/seeded:low"])
cc_library(name = "stray", srcs = ["good.cc"], deps = ["//verbs/seeded:low_user"])
"""
_UPWARD = 'cc_library(name = "upward", srcs = ["upward.cc"], deps = ["//dat/core/seeded:high"])\n'


class BazelLayers(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls._top = os.path.join(folder.name, "workspace")
        cls._output = os.path.join(folder.name, "output")
        shutil.copytree(os.path.join(tree.root(), "tools/build_rules"), os.path.join(cls._top, "tools/build_rules"))
        for name in ("WORKSPACE", "BUILD", ".bazelrc", ".bazelignore"):
            shutil.copy(os.path.join(tree.root(), name), cls._top)
        cls._write("README.md", "")
        cls._write("verbs/seeded/BUILD", _LOW)
        cls._write("verbs/seeded/low.h", "inline int Low() { return 1; }\n")
        cls._write("verbs/seeded/low_user.h", '#include "verbs/seeded/low.h"\n')
        cls._write("dat/core/seeded/BUILD", _HIGH)
        cls._write("dat/core/seeded/high.h", "")
        cls._write("dat/core/seeded/good.cc", '#include "verbs/seeded/low.h"\nint High() { return Low(); }\n')
        cls._write("verbs/upward/BUILD", _UPWARD)
        cls._write("verbs/upward/upward.cc", '#include "dat/core/seeded/high.h"\n')
        cls.addClassCleanup(cls._bazel, "shutdown")

    @classmethod
    def _write(cls, path, text):
        path = os.path.join(cls._top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    @classmethod
    def _bazel(cls, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("TEST_", "RUNFILES", "PYTHON"))}
        return subprocess.run(
            ["bazel", "--output_user_root=" + cls._output, "--max_idle_secs=60"] + list(arguments), cwd=cls._top,
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def _build(self, *arguments):
        # There can be no sandbox inside the test's own sandbox.
        result = self._bazel("build", "--spawn_strategy=local", *arguments)
        return result.returncode, result.stdout

    def test_1_downward_dependency_builds(self):
        code, output = self._build("//dat/core/seeded:good")
        self.assertEqual(code, 0, output)

    def test_2_upward_dependency_is_not_visible(self):
        code, output = self._build("//verbs/upward")
        self.assertNotEqual(code, 0, output)
        self.assertIn("//dat/core/seeded:high' is not visible from target '//verbs/upward:upward'", output)

    def test_3_gcc_accepts_a_stray_include(self):
        code, output = self._build("//dat/core/seeded:stray")
        self.assertEqual(code, 0, output)

    def test_4_layering_check_accepts_a_named_dependency(self):
        code, output = self._build("--config=clang", "//dat/core/seeded:good")
        self.assertEqual(code, 0, output)

    def test_5_layering_check_refuses_a_stray_include(self):
        code, output = self._build("--config=clang", "//dat/core/seeded:stray")
        self.assertNotEqual(code, 0, output)
        self.assertIn("does not depend on a module exporting 'verbs/seeded/low.h'", output)

    def test_6_another_machine_is_refused(self):
        folder = os.path.join(self._output, "fake")
        os.makedirs(folder)
        fake = os.path.join(folder, "uname")
        with open(fake, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\necho Linux aarch64\n")
        os.chmod(fake, 0o755)
        self._bazel("shutdown")
        path = os.environ["PATH"]
        os.environ["PATH"] = folder + ":" + path
        try:
            code, output = self._build("//dat/core/seeded:good")
        finally:
            os.environ["PATH"] = path
        self.assertNotEqual(code, 0, output)
        self.assertIn("built and tested on Linux on x86_64 only; this is Linux on aarch64", output)


if __name__ == "__main__":
    unittest.main()
