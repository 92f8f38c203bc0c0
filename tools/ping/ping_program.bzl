"""The targets that vipping and datping have alike."""

load("//tools/build_rules:python_test.bzl", "python_test")

def ping_program(name, deps, parts = [], linkopts = []):
    """The program `name` of the package of that name, and its tests.

    Its sources are name.cc, end, measure, options, report and its own parts; parameters is a library of its own. Parameters and end have a unit test.
    name_test.py runs once over each wire, against the program and against name_short, which is short of something once.

    Args:
      name: vipping or datping.
      deps: the face that it measures.
      parts: further sources, each a .cc and a .h.
      linkopts: further ones.
    """
    all_parts = ["end", "measure", "options", "report"] + parts
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
    native.cc_library(
        name = "parts",
        srcs = [part + ".cc" for part in all_parts],
        hdrs = [part + ".h" for part in all_parts],
        deps = deps + [
            ":parameters",
            "//tools/ping:histogram",
            "//tools/ping:options",
            "//tools/ping:program",
            "//tools/ping:report",
            "@nlohmann_json//:json",
        ],
    )
    native.cc_binary(
        name = name,
        srcs = [name + ".cc"],
        # Installed, its libraries are in PREFIX/lib.
        linkopts = ["-Wl,-rpath,$$ORIGIN/../lib"] + linkopts,
        visibility = [
            "//tests/lab:__pkg__",
            "//tools:__pkg__",
        ],
        deps = [":parts"],
    )

    # shortage.cc has a function of the face that takes the place of the library's.
    native.cc_binary(
        name = name + "_short",
        testonly = True,
        srcs = [
            name + ".cc",
            "shortage.cc",
        ],
        linkopts = ["-ldl"] + linkopts,
        deps = deps + [":parts"],
    )
    native.cc_test(
        name = "end_test",
        size = "small",
        srcs = ["end_test.cc"],
        linkopts = ["-ldl"] + linkopts,
        deps = deps + [
            ":parameters",
            ":parts",
            "@com_google_googletest//:gtest_main",
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
                ":%s_short" % name,
                "//tools/ping:pair.py",
            ],
            env = {"VIADUCT_WIRE": wire},
            tags = [wire],
        )
