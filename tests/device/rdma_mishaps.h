// Fixtures for the tests of an RDMA device's mishaps (tests/rdma_mock).
#ifndef VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
#define VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_

#include <string>

#include "tests/device/ends.h"
#include "tests/rdma_mock/failing_calls.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {

// No mishap outlives its test.
class MishapsTest : public DeviceTest {
 protected:
  ~MishapsTest() override { rdma_mock::EndMishaps(); }

  // Waits until only `count` of the device's queue pairs are left. False: this took too long.
  bool AwaitPairs(int count) {
    return Run([count] { return rdma_mock::LivePairs() == count; });
  }
  // `segment` has up to 64 bytes.
  void ExpectSent(const Segment& segment, End& from, End& to) {
    ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
    ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
    Expect(from.sends(), 2);
    Expect(to.receives(), 1);
  }
};

// Checks that the test leaves none of the device's objects behind.
class LeavesNothingTest : public MishapsTest {
 protected:
  void SetUp() override { before_ = rdma_mock::LiveObjects(); }
  void TearDown() override {
    rdma_mock::EndMishaps();
    DestroyEnds();
    EXPECT_TRUE(Run([this] { return rdma_mock::LiveObjects() == before_; }))
        << rdma_mock::LiveObjects() << "; before: " << before_;
  }

 private:
  std::string before_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
