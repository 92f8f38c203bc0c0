// Programs that define functions with the names of libc functions that they do not use, such as
// connect, listen or shutdown: nothing tells them that a network library uses sockets. ISO C 7.1.3
// reserves none of these names.
#include "tests/conformance/vipl/own_functions.h"

#include <vipl.h>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

TEST(OwnFunctions, S_AreNotCalledForLibcs) {
  RunPair(
      [](Peer& peer) {
        {
          Side side;
          side.Receive(0);
          side.Accept();
          EXPECT_EQ(side.TextOf(side.NextReceive()), "there");
          peer.Tell("received");
          peer.Await("disconnected");
        }
        EXPECT_STREQ(OwnFunctionCalled(), "");
      },
      [](Peer& peer) {
        {
          Side side;
          ASSERT_EQ(side.Connect(), VIP_SUCCESS);
          side.SendText(0, "there");
          peer.Await("received");
          EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
          peer.Tell("disconnected");
        }
        EXPECT_STREQ(OwnFunctionCalled(), "");
      });
}

}  // namespace
}  // namespace viaduct::tests
