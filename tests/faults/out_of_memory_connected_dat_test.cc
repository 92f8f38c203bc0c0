// Memory runs out while something is connected, or about to be. A call that ends something needs no
// memory; a call that begins something reports the failure, can be repeated, and ends nothing else.
#include <sched.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/failing_memory.h"
#include "tests/faults/famine.h"

namespace viaduct::tests {
namespace {

constexpr int kTries = 8;  // the first eight allocations of a call, one by one

// The server's `end` ends a connection that is in use, and its client is notified. `look` checks
// what is left.
using Act = std::function<void(Side&, DAT_EP_HANDLE)>;
// `prepare` is called before there is an endpoint.
void EndWithoutMemory(
    const std::function<DAT_RETURN(Side&, DAT_EP_HANDLE)>& end, const Act& look,
    const std::function<void(Side&)>& prepare = [](Side&) {}) {
  RunPair(
      [&](Peer& peer) {
        for (int n = 1; n <= kTries; ++n) {
          SCOPED_TRACE(n);
          Side side;
          prepare(side);
          const DAT_EP_HANDLE ep = side.NewEp();
          side.PostReceive(ep, 1);
          side.PostReceive(ep, 2);
          side.AcceptFrom(peer, ep, Port(0));
          peer.Await("sent");
          EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
          FailAllocationsFrom(n);
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

// Gives the endpoints a dispatcher for connection events with room for `length`.
void TakeShortDispatcher(Side& side, DAT_COUNT length) {
  side.connect_evd = side.NewEvd(
      static_cast<DAT_EVD_FLAGS>(DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG), length);
}
// Takes all of that room for other events.
DAT_RETURN Fill(Side& side, DAT_COUNT length) {
  DAT_EVENT other = {};
  other.event_number = DAT_SOFTWARE_EVENT;
  DAT_RETURN posted = DAT_SUCCESS;
  for (DAT_COUNT i = 0; i < length && posted == DAT_SUCCESS; ++i) {
    posted = dat_evd_post_se(side.connect_evd, &other);
  }
  return posted;
}
void TakeOthers(Side& side, DAT_COUNT length) {
  for (DAT_COUNT i = 0; i < length; ++i) Next(side.connect_evd, DAT_SOFTWARE_EVENT);
}

TEST(OutOfMemory, AnAbruptDatEpDisconnectNeedsNoneWhereTheDispatcherIsFull) {
  EndWithoutMemory(
      [](Side& side, DAT_EP_HANDLE ep) {
        const DAT_RETURN filled = Fill(side, 2);
        return filled != DAT_SUCCESS ? filled : dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
      },
      [](Side& side, DAT_EP_HANDLE ep) {
        TakeOthers(side, 2);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        side.ExpectFlushedReceives(ep, 2, 2);
      },
      [](Side& side) { TakeShortDispatcher(side, 2); });
}

// The engine's own thread has to report it. To lengthen a dispatcher of this size takes new pages.
TEST(OutOfMemory, ThePeersDisconnectIsToldWhereTheDispatcherIsFull) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs pages itself";
#endif
  constexpr DAT_COUNT kLength = 4096;
  RunPair(
      [](Peer& peer) {
        Side side;
        TakeShortDispatcher(side, kLength);
        const DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        Must(Fill(side, kLength));
        {
          const PageFamine famine;
          peer.Tell("full");
          while (StateOf(ep) != DAT_EP_STATE_DISCONNECTED) sched_yield();
        }
        TakeOthers(side, kLength);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
      },
      [](Peer& peer) {
        const ConnectingSide side(peer);
        peer.Await("full");
        Must(dat_ep_disconnect(side.ep, DAT_CLOSE_ABRUPT_FLAG));
        peer.AwaitEnd();
      });
}

// A call that begins an attempt has to have room for what it will report.
TEST(OutOfMemory, AFailedDatEpConnectIsNoAttempt) {
  RunAlone([] {
    Side side;
    TakeShortDispatcher(side, 2);
    Must(Fill(side, 2));
    const DAT_EP_HANDLE ep = side.NewEp();
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      FailAllocation(n);
      const DAT_RETURN result = side.TryConnect(ep, Port(0));
      failed = StopFailing();
      if (result == DAT_RETURN{DAT_SUCCESS}) {
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
      } else {
        EXPECT_TRUE(failed);
        EXPECT_TRUE(Fails(result, DAT_INSUFFICIENT_RESOURCES));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
      }
      Must(dat_ep_reset(ep));
    }
    EXPECT_GT(n, 3) << "the library allocates elsewhere";
  });
}

// The end of an endpoint with a shared queue has an asynchronous error, which nobody reads here.
TEST(OutOfMemory, AnEndIsToldWhereItsAsynchronousErrorIsLost) {
  constexpr int kEnds = 20;
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_SRQ_ATTR queue = {4, 1, DAT_SRQ_LW_DEFAULT};
        DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
        Must(dat_srq_create(side.ia, side.pz, &queue, &srq));
        bool lost = false;
        for (int i = 0; i < kEnds; ++i) {
          DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
          DAT_EP_ATTR attributes = {};
          attributes.service_type = DAT_SERVICE_TYPE_RC;
          Must(dat_ep_create_with_srq(side.ia, side.pz, side.receive_evd, side.request_evd,
                                      side.connect_evd, srq, &attributes, &ep));
          side.AcceptFrom(peer, ep, Port(0));
          FailAllocationsFrom(1);
          const DAT_RETURN result = dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
          lost = StopFailing() || lost;
          EXPECT_EQ(result, DAT_RETURN{DAT_SUCCESS});
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          Must(dat_ep_free(ep));
          peer.Tell("ended");
        }
        EXPECT_TRUE(lost) << "there was room for all: this proves nothing";
      },
      [](Peer& peer) {
        Side side;
        for (int i = 0; i < kEnds; ++i) {
          const DAT_EP_HANDLE ep = side.NewEp();
          side.ConnectTo(peer, ep, Port(0));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          Must(dat_ep_free(ep));
          peer.Await("ended");
        }
      });
}

// The same for an overflow, which a dequeue detects.
TEST(OutOfMemory, ADequeueGetsItsEventWhereAnOverflowIsNotTold) {
  constexpr int kOverflows = 20;
  RunPair(
      [](Peer& peer) {
        Side side;
        side.receive_evd = side.NewEvd(DAT_EVD_DTO_FLAG, 1);
        const DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        bool lost = false;
        for (int i = 0; i < kOverflows; ++i) {
          side.PostReceive(ep, 1);
          side.PostReceive(ep, 2);
          peer.Tell("posted");
          peer.Await("sent");
          DAT_EVENT event;
          DAT_RETURN taken;
          FailAllocationsFrom(1);
          do {
            taken = dat_evd_dequeue(side.receive_evd, &event);
          } while (DAT_GET_TYPE(taken) == DAT_QUEUE_EMPTY);
          lost = StopFailing() || lost;
          ASSERT_EQ(taken, DAT_RETURN{DAT_SUCCESS});
          EXPECT_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 1u);
          EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, 2u);
        }
        EXPECT_TRUE(lost) << "there was room for all: this proves nothing";
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        for (int i = 0; i < kOverflows; ++i) {
          peer.Await("posted");
          for (uint64_t cookie : {1, 2}) {
            Must(side.TrySend(side.ep, cookie));
            EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
          }
          peer.Tell("sent");
        }
        peer.AwaitEnd();
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
          TakeShortDispatcher(side, 1);  // the accept has to make room for its events
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

// The request goes to a service point that creates endpoints, and back: none of these is left.
TEST(OutOfMemory, AFailedDatCrHandoffLeavesTheRequestAndNoEndpoint) {
  RunPair(
      [](Peer& peer) {
        char name[] = "soft0";
        DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
        DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, cr_evd = DAT_HANDLE_NULL;
        DAT_PSP_HANDLE first = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
        Must(dat_ia_open(name, 8, &async_evd, &ia));
        Must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr_evd));
        Must(dat_psp_create(ia, Port(0), cr_evd, DAT_PSP_CONSUMER_FLAG, &first));
        Must(dat_psp_create(ia, Port(1), cr_evd, DAT_PSP_PROVIDER_FLAG, &second));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(cr_evd).cr_handle;
        int n = 0;
        for (bool failed = true; failed;) {
          SCOPED_TRACE(++n);
          FailAllocation(n);
          const DAT_RETURN result = dat_cr_handoff(cr, Port(1));
          failed = StopFailing();
          if (result != DAT_RETURN{DAT_SUCCESS}) {
            EXPECT_TRUE(failed);
            EXPECT_TRUE(Fails(result, DAT_INSUFFICIENT_RESOURCES));
            continue;
          }
          Must(dat_cr_handoff(NextRequest(cr_evd).cr_handle, Port(0)));
          cr = NextRequest(cr_evd).cr_handle;
        }
        EXPECT_GT(n, 3) << "the library allocates elsewhere";
        Must(Reject(cr, 0, nullptr));
        peer.Await("rejected");
        Must(dat_psp_free(first));
        Must(dat_psp_free(second));
        Must(dat_evd_free(cr_evd));
        EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_RETURN{DAT_SUCCESS});
      },
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
        peer.Tell("rejected");
      });
}

}  // namespace
}  // namespace viaduct::tests
