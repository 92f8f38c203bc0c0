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
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
