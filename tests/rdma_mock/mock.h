// What a test may ask of the mock.
#ifndef VIADUCT_TESTS_RDMA_MOCK_MOCK_H_
#define VIADUCT_TESTS_RDMA_MOCK_MOCK_H_

namespace viaduct::rdma_mock {

// Called by each ibv_post_send before it does anything, on its thread; null: nothing is.
void SetPostHook(void (*hook)());

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_MOCK_H_
