// Signal handlers that call the library, as the clean-up of an interrupted program does.
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <vipl.h>

#include <atomic>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

VIP_VI_HANDLE g_vi;
std::atomic<int> g_calls, g_refused;

void Count(VIP_RETURN result) {
  if (result == VIP_ERROR_RESOURCE) ++g_refused;
  ++g_calls;
}

void Disconnect(int) { Count(VipDisconnect(g_vi)); }
void Wait(int) {
  VIP_VI_ATTRIBUTES peer;
  Count(VipConnectPeerWait(g_vi, &peer));
}

// The handler nearly always interrupts a poll, and must not wait for what it has interrupted.
void InterruptPolls(void (*handler)(int)) {
  RunAlone([handler] {
    Side side;
    g_vi = side.vi;
    struct sigaction action = {}, before;
    action.sa_handler = handler;
    ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
    const itimerval every = {{0, 500}, {0, 500}}, never = {};
    ASSERT_EQ(setitimer(ITIMER_REAL, &every, nullptr), 0);
    while (g_calls < 200) {
      VIP_DESCRIPTOR* done = nullptr;
      ASSERT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR) << "nothing is posted";
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
    EXPECT_GT(g_refused, 0);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
  });
}

TEST(Signals, S_AHandlerInAPollIsRefusedAndDoesNotHang) { InterruptPolls(Disconnect); }
TEST(Signals, S_AHandlerInAPollDoesNotWait) { InterruptPolls(Wait); }

VIP_RETURN g_ended, g_changed;

void EndAndChange(int) {
  VIP_VI_ATTRIBUTES attributes = Attributes();
  g_ended = VipDisconnect(g_vi);
  g_changed = VipSetViAttributes(g_vi, &attributes);
}

// The interrupted request keeps the VI until it returns, which it cannot do while the handler runs.
TEST(Signals, S_AHandlerInARequestMayEndItAndNoMore) {
  RunAlone([] {
    setenv("VIADUCT_GRACE_MS", "60000", 1);
    Side side;
    g_vi = side.vi;
    struct sigaction action = {};
    action.sa_handler = EndAndChange;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    VIP_RETURN result = VIP_SUCCESS;
    Sleeper client([&] { result = side.Request(0, VIP_INFINITE); });
    client.AwaitAsleep();
    client.Interrupt(SIGUSR1);
    client.Join();
    EXPECT_EQ(g_ended, VIP_SUCCESS);
    EXPECT_EQ(g_changed, VIP_INVALID_STATE);
    EXPECT_EQ(result, VIP_INVALID_STATE);
  });
}

}  // namespace
}  // namespace viaduct::tests
