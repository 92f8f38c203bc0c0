// A peer that stands still while an adapter closes: what the adapter's last connection held is
// released when the peer has answered, although no adapter is left to notice.
#include <memory>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

TEST(LatePeer, LeavesNothingInAProcessWithoutAnAdapter) {
  RunPair(
      [](Peer& peer) {
        AcceptingSide side(peer);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, side.ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        // The library's own thread and descriptors come with the first adapter, and stay.
        std::make_unique<Side>().reset();
        const Holdings before = HoldingsNow();
        auto side = std::make_unique<ConnectingSide>(peer);
        StoppedPeer stopped(peer);
        Must(dat_ep_disconnect(side->ep, DAT_CLOSE_ABRUPT_FLAG));
        side.reset();
        stopped.Continue();
        EXPECT_TRUE(HoldsAtMost(before));
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
