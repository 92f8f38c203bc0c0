// An RDMA device that is taken out under a program of somebody else's registry: the event names the
// adapter by the handle that the program knows.
#include "gtest/gtest.h"
#include "tests/faults/failing_device.h"
#include "tests/faults/registry.h"

namespace viaduct::tests {
namespace {

constexpr DAT_TIMEOUT kPatience = 20'000'000;  // us

TEST(BrokenDeviceUnderARegistry, TheAdapterIsNamedAsTheProgramKnowsIt) {
  const DAT_PROVIDER* const plugin = ServeAdapter("plug", "lo");
  ASSERT_NE(plugin, nullptr);
  DAT_EVD_HANDLE async[2] = {DAT_HANDLE_NULL, DAT_HANDLE_NULL};
  DAT_IA_HANDLE ia[2], shown[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(OpenAdapter("plug", &async[i], &ia[i], &shown[i]), DAT_SUCCESS);
    ASSERT_NE(shown[i], ia[i]);
  }
  BreakDevice();
  DAT_EVENT event;
  DAT_COUNT more;
  ASSERT_EQ(plugin->evd_wait_func(async[0], kPatience, 1, &event, &more), DAT_SUCCESS);
  EXPECT_EQ(event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
  EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, shown[0]);
  while (plugin->evd_dequeue_func(async[1], &event) != DAT_SUCCESS) {
  }
  EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, shown[1]);
  for (const DAT_IA_HANDLE each : ia) {
    EXPECT_EQ(plugin->ia_close_func(each, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  }
}

}  // namespace
}  // namespace viaduct::tests
