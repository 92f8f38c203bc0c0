"""The mock of an RDMA device as one of mlx5, for tests."""

MLX5_LIBRARY = "//tests/rdma_mock:libmlx5.so.1"

# The environment of such a test, which has the library among its data.
MLX5 = {"RDMA_MOCK_MLX5": "tests/rdma_mock/libmlx5.so.1"}
