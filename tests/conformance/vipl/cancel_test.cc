// Threads that are cancelled while they wait (POSIX, Thread Cancellation), as servers cancel the
// thread that calls VipConnectWait. What they waited on works for others as before.
#include <pthread.h>
#include <vipl.h>

#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

// Cancels a thread in `wait`, with each of the two cancellation types.
void Cancel(const std::function<void()>& wait) {
  for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    CancelAsleep(type, wait);
  }
}

TEST(VipRecvWait, S_ASleepingThreadCanBeCancelled) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Receive(0);
        side.Accept();
        Cancel([&] {
          VIP_DESCRIPTOR* done;
          VipRecvWait(side.vi, VIP_INFINITE, &done);
        });
        peer.Tell("send");
        EXPECT_EQ(side.TextOf(side.NextReceive()), "after all");
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        ASSERT_EQ(side.Connect(), VIP_SUCCESS);
        peer.Await("send");
        side.SendText(0, "after all");
        peer.Await("done");
      });
}

TEST(VipCQWait, S_ASleepingThreadCanBeCancelled) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side;
    VIP_CQ_HANDLE cq;
    ASSERT_EQ(VipCreateCQ(side.nic.handle, 16, &cq), VIP_SUCCESS);
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    Cancel([&] { VipCQWait(cq, VIP_INFINITE, &vi, &receive); });
    EXPECT_EQ(VipCQWait(cq, 1, &vi, &receive), VIP_TIMEOUT);
    EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  });
}

TEST(VipConnectWait, S_ASleepingThreadCanBeCancelled) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(0)), remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE request;
    const auto wait = [&](VIP_ULONG timeout) {
      return VipConnectWait(side.nic.handle, local.get(), timeout, remote.get(), &attributes,
                            &request);
    };
    Cancel([&] { wait(VIP_INFINITE); });
    EXPECT_EQ(wait(1), VIP_TIMEOUT);
  });
}

TEST(VipConnectPeerWait, S_ASleepingThreadCanBeCancelled) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    Side side, other;
    NetAddress local = side.nic.Address(Name(1)), remote = side.nic.Address(Name(2));
    ASSERT_EQ(VipConnectPeerRequest(side.vi, local.get(), remote.get(), VIP_INFINITE), VIP_SUCCESS);
    Cancel([&] { VipConnectPeerWait(side.vi, &side.peer); });
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE) << "the request goes on";
    ASSERT_EQ(VipConnectPeerRequest(other.vi, remote.get(), local.get(), VIP_INFINITE),
              VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(other.vi, &other.peer), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerWait(side.vi, &side.peer), VIP_SUCCESS);
  });
}

// A call that is not a wait completes before the cancellation takes effect.
TEST(Cancellation, S_StrikesBehindOtherCalls) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kLosesTheCancelled;
  RunAlone([] {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_RETURN opened = VIP_NOT_DONE, closed = VIP_NOT_DONE;
    const auto cancelled = [](const std::function<void()>& call) {
      std::thread([&call] {
        pthread_cancel(pthread_self());
        call();
        pthread_testcancel();
        ADD_FAILURE() << "it was not cancelled";
      }).join();
    };
    cancelled([&] { opened = VipOpenNic("nic0", &nic); });
    ASSERT_EQ(opened, VIP_SUCCESS);
    cancelled([&] { closed = VipCloseNic(nic); });
    EXPECT_EQ(closed, VIP_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
