// How long a call waits: VIPL checklist C23, C37, C61, C81. A wait ends at its time-out and not
// before. Over the simulation, where waiting costs nothing, it is a year and must be exact.
#include <vipl.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/time_out.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr int64_t kMilli = 1'000'000;  // ns
constexpr int64_t kMinute = 60'000 * kMilli;
constexpr int64_t kYear = 365 * 24 * 60 * kMinute;  // in milliseconds it does not fit in 32 bits

// For VIPL's calls.
struct TimeOutInMilliseconds : TimeOut {
  explicit TimeOutInMilliseconds(int64_t over_sim) : TimeOut(over_sim, 50 * kMilli) {}
  operator VIP_ULONG() const { return static_cast<VIP_ULONG>(length() / kMilli); }
};

TEST(TimeOuts, C23_VipConnectWait) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(0));
    VIP_CONN_HANDLE connection;
    const TimeOutInMilliseconds time_out(kYear);
    EXPECT_EQ(VipConnectWait(side.nic.handle, local.get(), time_out, side.requester.get(),
                             &side.peer, &connection),
              VIP_TIMEOUT);
  });
}

// This call polls for the peer again and again: a year of that has a billion events.
TEST(TimeOuts, C37_VipConnectPeerWait) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(1)), remote = side.nic.Address(Name(2));
    const TimeOutInMilliseconds time_out(kMinute);
    ASSERT_EQ(VipConnectPeerRequest(side.vi, local.get(), remote.get(), time_out), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(side.vi, &side.peer), VIP_TIMEOUT);
  });
}

TEST(TimeOuts, C61_VipRecvWait) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    VIP_DESCRIPTOR* done = nullptr;
    const TimeOutInMilliseconds time_out(kYear);
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
    const TimeOutInMilliseconds time_out(kYear);
    EXPECT_EQ(VipCQWait(cq, time_out, &vi, &receive), VIP_TIMEOUT);
  });
}

}  // namespace
}  // namespace viaduct::tests
