#include "tests/bench/device_side.h"
#include "tests/hotpath/quiet_tests.h"
#include "tests/hotpath/resource_tests.h"
#include "tests/hotpath/waiting_tests.h"

namespace viaduct::hotpath {

INSTANTIATE_TYPED_TEST_SUITE_P(Device, QuietTest, bench::DeviceSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, WaitingTest, bench::DeviceSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, IdleTest, bench::DeviceSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Device, ResourceTest, bench::DeviceSide);

}  // namespace viaduct::hotpath
