// Where memory ends while something is connected, or about to be. What ends needs none; what
// begins says so, can be begun again, and is the end of nothing else.
#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/failing_memory.h"

namespace viaduct::tests {
namespace {

constexpr int kTries = 8;  // the first so many allocations of a call, one by one

// The server's `end` ends a connection that is in use, and its client hears of it. `look`: at what
// is left.
using Act = std::function<void(Side&, DAT_EP_HANDLE)>;
void EndWithoutMemory(const std::function<DAT_RETURN(Side&, DAT_EP_HANDLE)>& end, const Act& look) {
  RunPair(
      [&](Peer& peer) {
        for (int n = 1; n <= kTries; ++n) {
          SCOPED_TRACE(n);
          Side side;
          const DAT_EP_HANDLE ep = side.NewEp();
          side.PostReceive(ep, 1);
          side.PostReceive(ep, 2);
          side.AcceptFrom(peer, ep, Port(0));
          peer.Await("sent");
          EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
          FailAllocation(n);
          const DAT_RETURN result = end(side, ep);
          EXPECT_FALSE(StopFailing()) << "it allocates";
          EXPECT_EQ(result, DAT_RETURN{DAT_SUCCESS});
          look(side, ep);
          peer.Await("ended");
        }
      },
      [](Peer& peer) {
        for (int n = 1; n <= kTries; ++n) {
          SCOPED_TRACE(n);
          Side side;
          const DAT_EP_HANDLE ep = side.NewEp();
          side.ConnectTo(peer, ep, Port(0));
          Must(side.TrySend(ep, 1));
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
          peer.Tell("sent");
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          peer.Tell("ended");
        }
      });
}

TEST(OutOfMemory, DatEpFreeOfWhatIsConnectedNeedsNone) {
  EndWithoutMemory(
      [](Side&, DAT_EP_HANDLE ep) { return dat_ep_free(ep); },
      [](Side& side, DAT_EP_HANDLE) {
        for (DAT_EVD_HANDLE evd : {side.connect_evd, side.receive_evd, side.request_evd}) {
          Must(dat_evd_free(evd));  // nothing refers to it
        }
      });
}

TEST(OutOfMemory, AnAbruptDatEpDisconnectNeedsNone) {
  EndWithoutMemory(
      [](Side&, DAT_EP_HANDLE ep) { return dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG); },
      [](Side& side, DAT_EP_HANDLE ep) {
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        side.ExpectFlushedReceives(ep, 2, 2);
      });
}

TEST(OutOfMemory, AnAbruptDatIaCloseNeedsNone) {
  EndWithoutMemory(
      [](Side& side, DAT_EP_HANDLE) { return dat_ia_close(side.ia, DAT_CLOSE_ABRUPT_FLAG); },
      [](Side& side, DAT_EP_HANDLE ep) {
        EXPECT_TRUE(Fails(dat_ep_free(ep), DAT_INVALID_HANDLE));
        char name[] = "soft0";
        side.async_evd = DAT_HANDLE_NULL;
        Must(dat_ia_open(name, 8, &side.async_evd, &side.ia));  // which Side closes
      });
}

// Another connection between the two processes lives on, and the request waits.
TEST(OutOfMemory, AFailedDatCrAcceptLeavesTheRequestAndOtherConnections) {
  const std::vector<uint8_t> data = Pattern(40);
  RunPair(
      [&](Peer& peer) {
        AcceptingSide side(peer);
        side.Listen(Port(1));
        int n = 0;
        for (bool failed = true; failed;) {
          SCOPED_TRACE(++n);
          const DAT_EP_HANDLE ep = side.NewEp();
          peer.Send(true);
          const DAT_CR_HANDLE request = NextRequest(side.cr_evd).cr_handle;
          FailAllocation(n);
          const DAT_RETURN first = side.TryAccept(request, ep, data);
          failed = StopFailing();
          if (first != DAT_RETURN{DAT_SUCCESS}) {
            EXPECT_TRUE(failed);
            EXPECT_TRUE(Fails(first, DAT_INSUFFICIENT_RESOURCES));
            EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
            Must(side.TryAccept(request, ep, data));
          }
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          Must(dat_ep_free(ep));
        }
        EXPECT_GT(n, 1) << "the library allocates elsewhere";
        peer.Send(false);
        Must(side.TrySend(side.ep, 7));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        peer.Await("received");
      },
      [&](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE other = side.NewEp();
        side.PostReceive(other, 1);
        side.ConnectTo(peer, other, Port(0));
        while (peer.Receive<bool>()) {
          const DAT_EP_HANDLE ep = side.NewEp();
          side.Connect(ep, Port(1));
          const DAT_CONNECTION_EVENT_DATA event =
              NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          EXPECT_EQ(PrivateDataOf(event), data);
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          Must(dat_ep_free(ep));
        }
        EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
        peer.Tell("received");
      });
}

}  // namespace
}  // namespace viaduct::tests
