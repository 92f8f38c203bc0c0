#include "tests/bench/dat_side.h"
#include "tests/hotpath/quiet_tests.h"
#include "tests/hotpath/resource_tests.h"
#include "tests/hotpath/waiting_tests.h"

namespace viaduct::hotpath {

INSTANTIATE_TYPED_TEST_SUITE_P(Dat, QuietTest, bench::DatSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Dat, WaitingTest, bench::DatSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Dat, IdleTest, bench::DatSide);
INSTANTIATE_TYPED_TEST_SUITE_P(Dat, ResourceTest, bench::DatSide);

}  // namespace viaduct::hotpath
