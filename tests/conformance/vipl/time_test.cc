// How long a call waits: VIPL checklist C23, C37, C61, C81. A wait ends by its time-out and not
// before; over the simulation, where that costs nothing, it is a year and must be exact.
#include <vipl.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr VIP_ULONG kShort = 50;  // ms
constexpr VIP_ULONG kMinute = 60 * 1000;
constexpr VIP_ULONG kYear = 365ul * 24 * 60 * kMinute;  // no number of 32 bits holds it

// A time-out that passes, from its construction to its end: this one over sim, else a short one.
class TimeOut {
 public:
  explicit TimeOut(VIP_ULONG over_sim) : milliseconds_(Wire() == "sim" ? over_sim : kShort) {}
  ~TimeOut() {
    const int64_t passed = Now() - begin_;
    const int64_t wanted = static_cast<int64_t>(milliseconds_) * kNanosPerMilli;
    EXPECT_GE(passed, wanted);
    EXPECT_TRUE(Wire() != "sim" || passed == wanted) << passed << " instead of " << wanted;
  }
  TimeOut(const TimeOut&) = delete;
  TimeOut& operator=(const TimeOut&) = delete;
  operator VIP_ULONG() const { return milliseconds_; }

 private:
  const VIP_ULONG milliseconds_;
  const int64_t begin_ = Now();
};

TEST(TimeOuts, C23_VipConnectWait) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(0));
    VIP_CONN_HANDLE connection;
    const TimeOut time_out(kYear);
    EXPECT_EQ(VipConnectWait(side.nic.handle, local.get(), time_out, side.requester.get(),
                             &side.peer, &connection),
              VIP_TIMEOUT);
  });
}

// It looks for the peer again and again: a year of that has a billion events.
TEST(TimeOuts, C37_VipConnectPeerWait) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(1)), remote = side.nic.Address(Name(2));
    const TimeOut time_out(kMinute);
    ASSERT_EQ(VipConnectPeerRequest(side.vi, local.get(), remote.get(), time_out), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(side.vi, &side.peer), VIP_TIMEOUT);
  });
}

TEST(TimeOuts, C61_VipRecvWait) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    VIP_DESCRIPTOR* done = nullptr;
    const TimeOut time_out(kYear);
    EXPECT_EQ(VipRecvWait(side.vi, time_out, &done), VIP_TIMEOUT);
  });
}

TEST(TimeOuts, C81_VipCQWait) {
  RunAlone([] {
    Nic nic;
    VIP_CQ_HANDLE cq = nullptr;
    ASSERT_EQ(VipCreateCQ(nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    const TimeOut time_out(kYear);
    EXPECT_EQ(VipCQWait(cq, time_out, &vi, &receive), VIP_TIMEOUT);
  });
}

}  // namespace
}  // namespace viaduct::tests
