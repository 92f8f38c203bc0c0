// What goes wrong with a device, when a test says so. Any thread.
#ifndef VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_
#define VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_

#include <cstdint>

namespace viaduct::rdma_mock {

// The next so many registrations find no memory.
void FailRegistrations(int count);
// A key that was given back is given out again next.
void ReuseKeys(bool reuse);
// As with siw: what is posted to a pair whose connection is over never completes.
void SwallowAfterTheEnd(bool swallow);

// Protection domains that exist.
int LiveDomains();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_MISHAPS_H_
