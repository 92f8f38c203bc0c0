// What the device is, as the environment says. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_KIND_H_
#define VIADUCT_TESTS_RDMA_MOCK_KIND_H_

namespace viaduct::rdma_mock {

// RDMA_MOCK_IWARP. Siw is one of them; the others are hardware.
bool IsIwarp();
bool IsSiw();

// RDMA_MOCK_NO_WINDOWS: its driver tells of windows that its library does not have (bnxt_re).
bool LacksWindows();

// RDMA_MOCK_MLX5: the vendor is that of mlx5.
bool IsMlx5();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_KIND_H_
