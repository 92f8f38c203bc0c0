"""A chapter of the conformance tests: one source, one test for each wire."""

load("//tests/conformance/sim:over_sim.bzl", "over_sim")

def chapter(name, sim = False, tags = [], deps = []):
    """Defines name_shm_test, name_iwarp_test and, if some tests need no peer, name_sim_test from name_test.cc.

    Args:
      name: of the chapter.
      sim: some tests need no peer.
      tags: of the tests, in addition to "conformance" and the wire.
      deps: in addition to those of every chapter.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [name + "_test.cc"],
        alwayslink = True,
        deps = [
            ":side",
            "//tests/conformance/harness",
            "//vipl",
            "//vipl:vipl_header",
            "@com_google_googletest//:gtest",
        ] + deps,
    )
    for wire in ["shm", "iwarp"]:
        native.cc_test(
            name = "%s_%s_test" % (name, wire),
            size = "medium",
            args = ["--wire=" + wire],
            tags = [
                "conformance",
                wire,
            ] + tags,
            deps = [":" + name],
        )
    if sim:
        over_sim(
            name = name + "_sim_test",
            program = ":%s_shm_test" % name,
            sources = [name + "_test.cc"],
            tags = tags,
        )

def programs(name, visibility):
    """One program of each chapter above it in the package, to be run with any --wire=.

    Args:
      name: of the group.
      visibility: as everywhere.
    """
    native.filegroup(
        name = name,
        testonly = True,
        srcs = sorted([rule for rule in native.existing_rules() if rule.endswith("_iwarp_test")]),
        visibility = visibility,
    )
