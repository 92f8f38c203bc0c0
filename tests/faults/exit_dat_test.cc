// How the end of a process is reported to its peer: exit() and return from main end connections as
// a disconnect does, a crash breaks them.
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

// The process has sent nothing, and has not read what was sent to it.
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

// A send is complete for its poster when the library has it: exit() loses none, although the peer
// has not read for a while.
TEST(Exit, AfterSendsThatFoundNoRoomIsADisconnect) {
  static constexpr int kMost = 2000;
  static constexpr size_t kSize = 32 * 1024;
  RunPair(
      [](Peer& peer) {
        static Side* side = new Side;
        static Memory* memory = new Memory(*side, kSize);
        const DAT_EP_HANDLE ep = side->NewEp();
        side->AcceptFrom(peer, ep, Port(0));
        peer.Send(memory->Remote());
        peer.Await("ready");
        static StoppedPeer* stopped = new StoppedPeer(peer);
        peer.Send(SendUntilFull(*side, ep, *memory, kMost));
        atexit([] { stopped->Continue(); });
        exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, kSize);
        const DAT_EVD_HANDLE receives = side.NewEvd(DAT_EVD_DTO_FLAG, kMost + 1);
        DAT_EP_PARAM param = ParametersOf(side.NewEp());
        param.ep_attr.max_recv_dtos = kMost + 1;
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        Must(dat_ep_create(side.ia, side.pz, receives, side.request_evd, side.connect_evd,
                           &param.ep_attr, &ep));
        DAT_LMR_TRIPLET all = memory.Local(0, kSize);
        for (int i = 0; i <= kMost; ++i) {
          Must(dat_ep_post_recv(ep, 1, &all, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
        }
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        peer.Tell("ready");
        const int complete = peer.Receive<int>();
        // What this side sends to a process that is gone does not destroy what is still on its way.
        DAT_RMR_TRIPLET theirs = remote;
        DAT_LMR_TRIPLET byte = memory.Local(0, 1);
        theirs.segment_length = 1;
        for (int i = 0; i < complete; ++i) {
          ASSERT_EQ(NextCompletion(receives).status, DAT_DTO_SUCCESS) << i << " of " << complete;
          (void)dat_ep_post_rdma_write(ep, 1, &byte, Cookie(2), &theirs,
                                       DAT_COMPLETION_SUPPRESS_FLAG);
        }
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
      });
}

// TCP cannot tell a crash from a disconnect: the kernel closes the connection for the dead process.
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
