// How long a call waits: DAT checklist 48, 62, 90. A wait must end by its time-out and not before.
// Over the simulation the time-out is the longest that a DAT_TIMEOUT can say, and must be exact.
#include <cstdint>

#include "gtest/gtest.h"
#include "tests/conformance/dat/dat.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/time_out.h"

namespace viaduct::tests {
namespace {

constexpr int64_t kNanosPerMicro = 1000;
constexpr DAT_TIMEOUT kLongest = DAT_TIMEOUT_INFINITE - 1;  // 71 minutes

// A TimeOut for DAT's calls.
struct TimeOutInMicroseconds : TimeOut {
  TimeOutInMicroseconds()
      : TimeOut(kLongest * kNanosPerMicro, 20 * kMillisecond * kNanosPerMicro) {}
  operator DAT_TIMEOUT() const { return static_cast<DAT_TIMEOUT>(length() / kNanosPerMicro); }
};

TEST(TimeOuts, C048_EvdWait) {
  RunAlone([] {
    Side side;
    DAT_EVENT event;
    DAT_COUNT more;
    for (DAT_EVD_HANDLE evd : {side.receive_evd, side.connect_evd, side.cr_evd, side.async_evd}) {
      const TimeOutInMicroseconds time_out;
      EXPECT_TRUE(Fails(dat_evd_wait(evd, time_out, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
    }
  });
}

// The request waits longer than the longest time-out that there is.
TEST(TimeOuts, C090_AnEndlessRequest) {
  RunAlone([] {
    Side side;
    side.Listen(Port(0));
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, Port(0), DAT_TIMEOUT_INFINITE);
    NextRequest(side.cr_evd);
    DAT_EVENT event;
    DAT_COUNT more;
    for (int i = 0; i < 2; ++i) {
      const TimeOutInMicroseconds time_out;
      EXPECT_TRUE(
          Fails(dat_evd_wait(side.connect_evd, time_out, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
    }
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
  });
}

TEST(TimeOuts, C062_CnoWait) {
  RunAlone([] {
    Side side;
    DAT_CNO_HANDLE cno;
    Must(dat_cno_create(side.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    DAT_EVD_HANDLE evd, told;
    Must(dat_evd_create(side.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    const TimeOutInMicroseconds time_out;
    EXPECT_TRUE(Fails(dat_cno_wait(cno, time_out, &told), DAT_QUEUE_EMPTY));
  });
}

}  // namespace
}  // namespace viaduct::tests
