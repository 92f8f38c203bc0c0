#include "tests/bench/vipl_side.h"
#include "tests/hotpath/quiet_tests.h"
#include "tests/hotpath/resource_tests.h"
#include "tests/hotpath/waiting_tests.h"

namespace viaduct::hotpath {

INSTANTIATE_TYPED_TEST_SUITE_P(Vipl, QuietTest, bench::ViplSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Vipl, WaitingTest, bench::ViplSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Vipl, ResourceTest, bench::ViplSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Vipl, IdleTest, bench::ViplSide);

}  // namespace viaduct::hotpath
