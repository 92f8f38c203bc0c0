"""One source of fault tests, over one wire or over each."""

def fault_test(name, deps, wires = ["shm", "iwarp"], data = [], linkopts = [], tags = []):
    """Defines name_WIRE_test from name_test.cc.

    Args:
      name: of the source.
      deps: beside the harness and this folder's library.
      wires: values of VIADUCT_WIRE.
      data: files beside the program.
      linkopts: as everywhere.
      tags: beside the wire's.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [name + "_test.cc"],
        alwayslink = True,
        deps = deps + [
            ":faults",
            "//tests/conformance/harness",
            "@com_google_googletest//:gtest",
        ],
    )
    for wire in wires:
        native.cc_test(
            name = "%s_%s_test" % (name, wire),
            size = "medium",
            args = ["--wire=" + wire],
            data = data,
            linkopts = linkopts,
            tags = tags + [wire],
            deps = [":" + name],
        )
