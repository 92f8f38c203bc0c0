// What the device was asked for last. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_ASKED_H_
#define VIADUCT_TESTS_RDMA_MOCK_ASKED_H_

namespace viaduct::rdma_mock {

// ibv_access_flags of the last registration.
int AskedAccess();

// Of the last queue pair that was opened to a peer: its ibv_access_flags, and the delay for a peer
// that has found no receive; 0: it was not said, which is the longest.
unsigned AskedPeerAccess();
int AskedDelay();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_ASKED_H_
