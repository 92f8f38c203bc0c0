"""Tests of programs over the mock of an RDMA device: both ends are in one process."""

load(":mlx5.bzl", "MLX5", "MLX5_LIBRARY")

# What the mock is asked to be.
DEVICES = {
    "": {},
    "iwarp": {"RDMA_MOCK_IWARP": "1"},
    "siw": {"RDMA_MOCK_IWARP": "siw"},
    "mlx5": MLX5,
}

def mock_test(name, deps, device = "", size = "medium", srcs = [], args = [], linkopts = [], tags = []):
    """A cc_test of a face, whose adapters are the mock's.

    Args:
      name: of the test.
      deps: the face, the test's own, and a main().
      device: one of DEVICES; "": of InfiniBand.
      size: as of cc_test.
      srcs: as of cc_test.
      args: as of cc_test.
      linkopts: as of cc_test.
      tags: as of cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        args = args,
        data = [
            "//dat/core:libviaduct.so.1",
            MLX5_LIBRARY,
            "//tests/rdma_mock:libviaduct-rdma.so.1",
        ],
        env = dict(
            DEVICES[device],
            LD_LIBRARY_PATH = "tests/rdma_mock:dat/core",
            VIADUCT_WIRE = "rdma",
        ),
        linkopts = linkopts,
        tags = tags,
        deps = deps + ["//tests/rdma_mock:machine"],
    )
