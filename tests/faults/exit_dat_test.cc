// What the other side of a process that leaves is told: exit() and return from main end connections
// as a disconnect does, a crash breaks them.
#include <signal.h>

#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

// Connects, with two receives posted.
DAT_EP_HANDLE Open(Side& side, Peer& peer) {
  const DAT_EP_HANDLE ep = side.NewEp();
  side.PostReceive(ep, 1);
  side.PostReceive(ep, 2);
  side.ConnectTo(peer, ep, Port(0));
  return ep;
}

TEST(Exit, IsADisconnect) {
  RunPair(
      [](Peer& peer) {
        auto* side = new Side;
        const DAT_EP_HANDLE ep = side->NewEp();
        side->AcceptFrom(peer, ep, Port(0));
        Must(side->TrySend(ep, 1));
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = Open(side, peer);
        EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS) << "sent just before";
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        side.ExpectFlushedReceives(ep, 2, 2);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
      });
}

// It has sent nothing and not read what was sent to it.
TEST(Exit, WithUnreadMessagesIsADisconnect) {
  RunPair(
      [](Peer& peer) {
        auto* side = new Side;
        const DAT_EP_HANDLE ep = side->NewEp();
        side->AcceptFrom(peer, ep, Port(0));
        peer.Await("sent");
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = Open(side, peer);
        for (uint64_t n = 0; n < 8; ++n) Must(side.TrySend(ep, n));
        peer.Tell("sent");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
      });
}

// TCP does not tell a crash from a disconnect: the kernel says good-bye for the dead.
TEST(Exit, CrashIsNone) {
  PairOptions options;
  options.server_is_killed = true;
  RunPair(
      [](Peer& peer) {
        Side side;
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Await("never");
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = Open(side, peer);
        ASSERT_EQ(kill(peer.pid(), SIGKILL), 0);
        if (Wire() == "shm") {
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        } else {
          Next(side.connect_evd);
        }
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
      },
      options);
}

}  // namespace
}  // namespace viaduct::tests
