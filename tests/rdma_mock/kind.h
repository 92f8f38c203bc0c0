// What the device is, as RDMA_MOCK_IWARP says in the environment. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_KIND_H_
#define VIADUCT_TESTS_RDMA_MOCK_KIND_H_

namespace viaduct::rdma_mock {

// Siw is one of them; the others are hardware.
bool IsIwarp();
bool IsSiw();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_KIND_H_
