// What the device is, as the environment says. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_KIND_H_
#define VIADUCT_TESTS_RDMA_MOCK_KIND_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// RDMA_MOCK_IWARP. Siw is one of them; the others are hardware.
bool IsIwarp();
bool IsSiw();

// Its port is one of InfiniBand.
bool OnInfiniband();
// There the partition that connections agree on is not the first one, which interfaces have.
constexpr int kAgreedPartition = 1;

// RDMA_MOCK_NO_WINDOWS: its driver tells of windows that its library does not have (bnxt_re).
bool LacksWindows();

// RDMA_MOCK_MLX5 (mlx5.h): the vendor is that of mlx5, and the port one of Ethernet (RoCE).
bool IsMlx5();
// Of the extensions of that one's provider.
constexpr uint32_t kExtensionVendor = 0x15b3;
constexpr uint32_t kExtensions = 7;

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_KIND_H_
