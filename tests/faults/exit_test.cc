// A process that leaves with everything open: by exit() or by returning from main, with a
// connection alive and threads inside the library. It ends with its own status, and the other side
// gets its event.
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

// Exits while it is connected, and while threads wait for what never comes.
void LeaveByExit(bool active) {
  auto* side = new Side;
  side->Receive(0);
  if (active) {
    side->Connect();
  } else {
    side->Accept();
  }
  side->SendText(16, "here");
  VIP_CQ_HANDLE cq = nullptr;
  ASSERT_EQ(VipCreateCQ(side->nic.handle, 8, &cq), VIP_SUCCESS);
  Sleeper* const threads[] = {
      new Sleeper([side] {
        VIP_DESCRIPTOR* done = nullptr;
        VipRecvWait(side->vi, VIP_INFINITE, &done);
      }),
      new Sleeper([side] {
        VIP_CONN_HANDLE connection = nullptr;
        NetAddress local = side->nic.Address(Name(5)), remote;
        VIP_VI_ATTRIBUTES attributes;
        VipConnectWait(side->nic.handle, local.get(), VIP_INFINITE, remote.get(), &attributes,
                       &connection);
      }),
      new Sleeper([cq] {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receives;
        VipCQWait(cq, VIP_INFINITE, &vi, &receives);
      }),
  };
  for (Sleeper* thread : threads) thread->AwaitAsleep();
  fflush(nullptr);
  exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST(Exit, WithAConnectionAndThreadsInside) {
  for (bool active : {false, true}) {
    RunPair(
        [active](Peer& peer) {
          Side side;
          ErrorLog errors(side.nic.handle);
          side.Receive(0);
          side.Receive(1);
          if (active) {
            side.Accept();
          } else {
            side.Connect();
          }
          EXPECT_EQ(side.TextOf(side.NextReceive()), "here");
          VIP_DESCRIPTOR* done = nullptr;
          EXPECT_EQ(VipRecvWait(side.vi, 20000, &done), VIP_DESCRIPTOR_ERROR);
          ASSERT_EQ(done, side.memory.descriptor(1));
          EXPECT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK,
                    static_cast<VIP_UINT32>(VIP_STATUS_DESC_FLUSHED_ERROR));
          VIP_ERROR_DESCRIPTOR error;
          ASSERT_TRUE(errors.Next(&error));
          EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
          EXPECT_EQ(side.State(), VIP_STATE_ERROR);
          peer.AwaitEnd();
        },
        [active](Peer&) { LeaveByExit(active); });
    if (HasOwnNetwork()) {
      EXPECT_TRUE(NetworkIsEmpty());
    }
  }
}

// A C program connected to itself.
TEST(Exit, OfAProgram) {
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const std::string folder = std::string(self).substr(0, std::string(self).rfind('/'));
  for (const char* how : {"return", "exit", "exit-in-thread"}) {
    SCOPED_TRACE(how);
    const std::string port = std::to_string(Port(3));
    const int status =
        system(("timeout -s ABRT 60 " + folder + "/leave " + how + " " + port).c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "wait status " << status;
  }
  if (HasOwnNetwork()) {
    EXPECT_TRUE(NetworkIsEmpty());
  }
}

}  // namespace
}  // namespace viaduct::tests
