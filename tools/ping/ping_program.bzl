"""The targets that vipping and datping have alike."""

load("//tools/build_rules:python_test.bzl", "python_test")

def ping_program(name, deps, parts = [], linkopts = []):
    """The program `name` of the package of that name, and its tests.

    Its sources are end, measure, options, report and its own parts beside name.cc; parameters is a library of its own, with a unit test.
    name_test.py runs once over each wire.

    Args:
      name: vipping or datping.
      deps: the face that it measures.
      parts: further sources, each a .cc and a .h.
      linkopts: further ones.
    """
    native.cc_library(
        name = "parameters",
        srcs = ["parameters.cc"],
        hdrs = ["parameters.h"],
        deps = ["//tools/ping:parameters"],
    )
    native.cc_test(
        name = "parameters_test",
        size = "small",
        srcs = ["parameters_test.cc"],
        deps = [
            ":parameters",
            "@com_google_googletest//:gtest_main",
        ],
    )
    native.cc_binary(
        name = name,
        srcs = [
            part + ending
            for part in ["end", "measure", "options", "report"] + parts
            for ending in [".cc", ".h"]
        ] + [name + ".cc"],
        # Installed, its libraries are in PREFIX/lib.
        linkopts = ["-Wl,-rpath,$$ORIGIN/../lib"] + linkopts,
        visibility = [
            "//tests/lab:__pkg__",
            "//tools:__pkg__",
        ],
        deps = deps + [
            ":parameters",
            "//tools/ping:histogram",
            "//tools/ping:options",
            "//tools/ping:program",
            "//tools/ping:report",
            "@nlohmann_json//:json",
        ],
    )
    for wire in ["shm", "iwarp"]:
        python_test(
            name = "%s_%s_test" % (name, wire),
            size = "medium",
            src = name + "_test.py",
            data = [
                name + ".1",
                ":" + name,
                "//tools/ping:pair.py",
            ],
            env = {"VIADUCT_WIRE": wire},
            tags = [wire],
        )
