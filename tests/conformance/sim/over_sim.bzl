"""A conformance program over the simulation."""

load("//tools/build_rules:python_test.bzl", "python_test")

def over_sim(name, program, sources, tags = []):
    """Runs the tests of `program` that need no peer.

    Args:
      name: of the test.
      program: a program whose main() is that of the conformance harness.
      sources: of its tests.
      tags: of the test, in addition to "conformance" and "sim".
    """
    python_test(
        name = name,
        size = "medium",
        src = "//tests/conformance/sim:over_sim.py",
        args = ["$(rootpath %s)" % file for file in [program] + sources],
        data = [
            program,
            "//tests/conformance/sim:README.md",
            "//tests/conformance/sim:libviaduct.so.1",
        ] + sources,
        tags = [
            "conformance",
            "sim",
        ] + tags,
    )
