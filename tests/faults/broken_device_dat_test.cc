// An RDMA device that is taken out under DAT programs: every adapter on it reports that to its
// asynchronous dispatcher.
#include <dat2/udat.h>

#include "gtest/gtest.h"
#include "tests/faults/failing_device.h"

namespace viaduct::tests {
namespace {

constexpr DAT_TIMEOUT kPatience = 20'000'000;  // us
char kName[] = "soft0";

struct Adapter {
  Adapter() { EXPECT_EQ(dat_ia_open(kName, 8, &async, &ia), DAT_SUCCESS); }
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
};

TEST(BrokenDevice, EveryAdapterHears) {
  Adapter adapters[2];
  BreakDevice();
  BreakDevice();  // reported only once
  DAT_EVENT event;
  DAT_COUNT more;
  for (Adapter& adapter : adapters) {
    ASSERT_EQ(dat_evd_wait(adapter.async, kPatience, 1, &event, &more), DAT_SUCCESS);
    EXPECT_EQ(event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
    EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, adapter.ia);
    EXPECT_EQ(event.event_data.asynch_error_event_data.reason, DAT_IA_CATASTROPHIC_ERROR);
  }
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE late = DAT_HANDLE_NULL;
  EXPECT_EQ(DAT_GET_TYPE(dat_ia_open(kName, 8, &async, &late)), DAT_INSUFFICIENT_RESOURCES);
  for (Adapter& adapter : adapters) {
    EXPECT_EQ(DAT_GET_TYPE(dat_evd_dequeue(adapter.async, &event)), DAT_QUEUE_EMPTY);
    EXPECT_EQ(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  }
}

}  // namespace
}  // namespace viaduct::tests
