"""One source of fault tests, over each wire or each kind of RDMA device."""

load("//tests/rdma_mock:mock_test.bzl", "DEVICES", "mock_test")

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

def device_fault_test(name, deps, kinds = None, linkopts = []):
    """Defines name_test and name_DEVICE_test from name_test.cc: both ends in one process.

    Args:
      name: of the source.
      deps: beside the mock.
      kinds: the kinds to run, by device, for devices that do not run all; None: there is only name_test, without kinds.
      linkopts: as everywhere.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [name + "_test.cc"],
        alwayslink = True,
        deps = deps + ["@com_google_googletest//:gtest"],
    )
    for device in DEVICES:
        if device and kinds == None:
            continue
        suffix = "_" + device if device else ""
        filters = ["*/" + kind for kind in kinds.get(suffix, ["*"])] if kinds != None else ["*"]
        mock_test(
            name = name + suffix + "_test",
            args = ["--gtest_filter=" + ":".join(filters)],
            device = device,
            linkopts = linkopts,
            tags = ["threads"],
            deps = [
                ":" + name,
                "@com_google_googletest//:gtest_main",
            ],
        )
