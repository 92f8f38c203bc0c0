// What the tests of an RDMA device's mishaps have in common (tests/rdma_mock).
#ifndef VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
#define VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_

#include "tests/device/ends.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {

// None of them outlives its test.
class MishapsTest : public DeviceTest {
 protected:
  ~MishapsTest() override { rdma_mock::EndMishaps(); }

  // So many queue pairs of the device are left when the others are buried. False: not in time.
  bool AwaitPairs(int count) {
    return Run([count] { return rdma_mock::LivePairs() == count; });
  }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
