// What is left at an RDMA device where memory ends (tests/rdma_mock).
#include <new>

#include "gtest/gtest.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/faults/failing_memory.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {
namespace {

using OutOfMemoryTest = MishapsTest;

TEST_F(OutOfMemoryTest, NoDomainIsLeft) {
  const int before = rdma_mock::LiveDomains();
  bool failed = true;
  for (int n = 1; failed; ++n) {
    bool made = false;
    tests::FailAllocation(n);
    try {
      made = a().CreateDomain(/*wildcard=*/false).ok();
    } catch (const std::bad_alloc&) {
    }
    failed = tests::StopFailing();
    EXPECT_EQ(made, !failed) << n;
    EXPECT_EQ(rdma_mock::LiveDomains(), before) << n;
  }
}

}  // namespace
}  // namespace viaduct::verbs
