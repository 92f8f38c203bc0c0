#include "tools/datping/end.h"

#include "gtest/gtest.h"

namespace viaduct::datping {
namespace {

TEST(End, LeavesNothingIfItCannotBeMade) {
  const Adapter adapter("soft0");
  Parameters parameters;
  parameters.completion = Completion::kCno;
  parameters.depth = 1 << 16;  // more than an endpoint can have
  EXPECT_THROW(End(adapter, parameters, /*timeout_seconds=*/1), Failure);
  EXPECT_EQ(dat_pz_free(adapter.zone()), DAT_SUCCESS) << "memory is registered in it";
  EXPECT_EQ(dat_ia_close(adapter.ia(), DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
}

}  // namespace
}  // namespace viaduct::datping
