// What kind of device the mock is, as set by the environment. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_KIND_H_
#define VIADUCT_TESTS_RDMA_MOCK_KIND_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// RDMA_MOCK_IWARP. siw is one of the iWARP devices; the others are hardware.
bool IsIwarp();
bool IsSiw();

// Whether a port is an InfiniBand port. The device has two ports, 1 and 2. Unless it is an iWARP
// device, one of them is an InfiniBand port and the other one an Ethernet port.
bool IsInfiniband(int port);
// On InfiniBand, connections agree on a partition that is not the first one, which interfaces use.
constexpr int kAgreedPartition = 1;

// RDMA_MOCK_NO_WINDOWS: the driver reports windows that its library does not have (bnxt_re).
bool LacksWindows();

// RDMA_MOCK_MLX5 (mlx5.h): the vendor is mlx5's, and port 1 is an Ethernet port (RoCE).
bool IsMlx5();
// The vendor and the options of the extensions that mlx5's provider has.
constexpr uint32_t kExtensionVendor = 0x15b3;
constexpr uint32_t kExtensions = 7;

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_KIND_H_
