#include "tests/rdma_mock/mishaps.h"

#include "tests/rdma_mock/objects.h"

namespace viaduct::rdma_mock {

void FailRegistrations(int count) { mishaps.failing_registrations = count; }

void ReuseKeys(bool reuse) { mishaps.reuse_keys = reuse; }

void SwallowAfterTheEnd(bool swallow) { mishaps.swallow = swallow; }

int LiveDomains() { return mishaps.live_domains; }

}  // namespace viaduct::rdma_mock
