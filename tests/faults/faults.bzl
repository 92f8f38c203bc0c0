"""One source of fault tests, over each wire or each kind of RDMA device."""

load("//tests/rdma_mock:mlx5.bzl", "MLX5", "MLX5_LIBRARY")

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

# What tests/rdma_mock is asked to be.
_DEVICES = {
    "": {},
    "_iwarp": {"RDMA_MOCK_IWARP": "1"},
    "_siw": {"RDMA_MOCK_IWARP": "siw"},
    "_mlx5": MLX5,
}

def device_fault_test(name, deps, kinds = None, linkopts = []):
    """Defines name_test and name_DEVICE_test from name_test.cc: both ends in one process.

    Args:
      name: of the source.
      deps: beside the mock.
      kinds: by device, for those that do not run all of them; without them there is name_test alone, with no kinds.
      linkopts: as everywhere.
    """
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [name + "_test.cc"],
        alwayslink = True,
        deps = deps + ["@com_google_googletest//:gtest"],
    )
    for device, env in _DEVICES.items():
        if device and kinds == None:
            continue
        filters = ["*/" + kind for kind in kinds.get(device, ["*"])] if kinds != None else ["*"]
        native.cc_test(
            name = name + device + "_test",
            size = "medium",
            args = ["--gtest_filter=" + ":".join(filters)],
            data = [
                "//dat/core:libviaduct.so.1",
                MLX5_LIBRARY,
                "//tests/rdma_mock:libviaduct-rdma.so.1",
            ],
            env = dict(
                env,
                LD_LIBRARY_PATH = "tests/rdma_mock:dat/core",
                VIADUCT_WIRE = "rdma",
            ),
            linkopts = linkopts,
            tags = ["threads"],
            deps = [
                ":" + name,
                "//tests/rdma_mock:machine",
                "@com_google_googletest//:gtest_main",
            ],
        )
