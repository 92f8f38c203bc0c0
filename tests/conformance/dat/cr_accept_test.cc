// dat_cr_accept, dat_cr_reject, dat_cr_handoff: uDAPL 1.2, the pages of those names; DAT checklist
// 91-94 and 98.
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

// The active side has gone before the accept: it was killed, or its request timed out.
void AcceptAfterTheOtherLeft(bool dies) {
  PairOptions options;
  options.client_is_killed = dies;
  RunPair(
      [=](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 1);
        side.PostReceive(ep, 2);
        side.Listen(Port(0));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        if (dies) {
          kill(peer.pid(), SIGKILL);
          peer.AwaitEnd();
        } else {
          peer.Await("gone");
        }
        Must(side.TryAccept(cr, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        side.ExpectFlushedReceives(ep, 1, 2);
        EXPECT_TRUE(IsEmpty(side.connect_evd));
        EXPECT_TRUE(Fails(side.TryAccept(cr, side.NewEp()), DAT_INVALID_HANDLE));
      },
      [=](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0), dies ? kPatience : 2 * kSecond);
        if (dies) peer.AwaitEnd();
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_TIMED_OUT, ep);
        peer.Tell("gone");
      },
      options);
}

TEST(CrAccept, C091_AfterTheActiveSideTimedOut) { AcceptAfterTheOtherLeft(false); }
TEST(CrAccept, C091_AfterTheActiveSideDied) { AcceptAfterTheOtherLeft(true); }

TEST(CrAccept, C091_AfterTheActiveSideDisconnected) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.Listen(Port(0));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        peer.Tell("arrived");
        peer.Await("gone");
        Must(side.TryAccept(cr, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Await("arrived");
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        peer.Tell("gone");
      });
}

// Runs `body` with a request that has arrived on a public service point. The other side waits for
// the `outcome`.
void WithRequest(const std::function<void(Side&, DAT_CR_HANDLE)>& body,
                 DAT_EVENT_NUMBER outcome = DAT_CONNECTION_EVENT_ESTABLISHED) {
  RunPair(
      [&](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        body(side, NextRequest(side.cr_evd).cr_handle);
        peer.Await("done");
      },
      [&](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0), kPatience, Pattern(30));
        NextConnection(side.connect_evd, outcome, ep);
        peer.Tell("done");
      });
}

// After a failed accept the request and its private data are what they were, and a good endpoint
// is accepted.
void ThenAGoodOneWorks(Side& side, DAT_CR_HANDLE cr) {
  DAT_CR_PARAM param;
  Must(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  EXPECT_EQ(PrivateDataOf(param), Pattern(30));
  EXPECT_EQ(param.local_ep_handle, DAT_HANDLE_NULL);
  DAT_EP_HANDLE good = side.NewEp();
  Must(side.TryAccept(cr, good));
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, good);
}

TEST(CrAccept, C092_EndpointInAnotherState) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    DAT_EP_HANDLE reserved = side.NewEp();
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(1), reserved, side.cr_evd, &rsp));
    side.PostReceive(reserved, 1);
    EXPECT_TRUE(Fails(side.TryAccept(cr, reserved), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(reserved), DAT_EP_STATE_RESERVED);
    EXPECT_TRUE(IsEmpty(side.receive_evd));
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrAccept, C092_EndpointWithoutConnectDispatcher) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, DAT_HANDLE_NULL,
                       nullptr, &ep));
    EXPECT_TRUE(Fails(side.TryAccept(cr, ep), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrAccept, C092_EndpointWithoutZone) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, DAT_HANDLE_NULL, side.receive_evd, side.request_evd,
                       side.connect_evd, nullptr, &ep));
    EXPECT_TRUE(Fails(side.TryAccept(cr, ep), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrAccept, C092_EndpointWhoseZoneWasTakenAway) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_EP_PARAM param = {};
    param.pz_handle = DAT_HANDLE_NULL;
    Must(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
    EXPECT_TRUE(Fails(side.TryAccept(cr, ep), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrAccept, C092_BadPrivateData) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    DAT_EP_HANDLE ep = side.NewEp();
    std::vector<uint8_t> data(static_cast<size_t>(side.provider.max_private_data_size) + 1);
    EXPECT_TRUE(
        Fails(dat_cr_accept(cr, ep, -1, data.data()), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(side.TryAccept(cr, ep, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(dat_cr_accept(cr, ep, 1, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrAccept, C092_EndpointOfAnotherAdapter) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    Side other;
    EXPECT_TRUE(
        Fails(side.TryAccept(cr, other.NewEp()), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
    ThenAGoodOneWorks(side, cr);
  });
}

void ExpectDead(Side& side, DAT_CR_HANDLE cr) {
  DAT_CR_PARAM param;
  EXPECT_TRUE(
      Fails(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
  EXPECT_TRUE(Fails(side.TryAccept(cr, side.NewEp()), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
  EXPECT_TRUE(Fails(Reject(cr, 0, nullptr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
  EXPECT_TRUE(Fails(dat_cr_handoff(cr, Port(1)), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
}

TEST(CrAccept, C093_HandleDiesWithAccept) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    Must(side.TryAccept(cr, side.NewEp()));
    ExpectDead(side, cr);
  });
}

TEST(CrAccept, C093_HandleDiesWithReject) {
  WithRequest(
      [](Side& side, DAT_CR_HANDLE cr) {
        Must(Reject(cr, 0, nullptr));
        ExpectDead(side, cr);
      },
      DAT_CONNECTION_EVENT_PEER_REJECTED);
}

TEST(CrAccept, C093_HandleDiesWithHandoff) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    side.Listen(Port(1));
    Must(dat_cr_handoff(cr, Port(1)));
    ExpectDead(side, cr);
    Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, side.NewEp()));
  });
}

TEST(CrAccept, C094_NoEndpointForAConsumersRequest) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    EXPECT_TRUE(
        Fails(side.TryAccept(cr, DAT_HANDLE_NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrAccept, C094_EndpointForARequestThatHasOne) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE reserved = side.NewEp(), other = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), reserved, side.cr_evd, &rsp));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        EXPECT_TRUE(Fails(side.TryAccept(cr, other), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
        EXPECT_EQ(StateOf(other), DAT_EP_STATE_UNCONNECTED);
        EXPECT_EQ(StateOf(reserved), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
        Must(side.TryAccept(cr, DAT_HANDLE_NULL));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, reserved);
        peer.Tell("accepted");
        peer.Await("done");
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        peer.Tell("done");
      });
}

TEST(CrAccept, S_ReceivesPostedBeforeAcceptTakeTheFirstMessage) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 17);
        side.Listen(Port(0));
        peer.Tell("listening");
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
        peer.Tell("accepted");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        const auto done = NextCompletion(side.receive_evd);
        EXPECT_EQ(done.user_cookie.as_64, 17u);
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(done.transfered_length, 1u);
        peer.Tell("done");
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        Must(side.TrySend(side.ep, 1));
        peer.Await("done");
      });
}

TEST(CrReject, S_BadPrivateDataLeavesTheRequest) {
#if VIADUCT_TEST_DAT == 12
  GTEST_SKIP() << "dat_cr_reject of 1.2 has no private data";
#endif
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    std::vector<uint8_t> data(static_cast<size_t>(side.provider.max_private_data_size) + 1);
    EXPECT_TRUE(Fails(Reject(cr, -1, data.data()), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(Reject(cr, static_cast<DAT_COUNT>(data.size()), data.data()),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(Reject(cr, 1, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrHandoff, C098_RequestKeepsItsContents) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_PSP_HANDLE first = side.Listen(Port(0));
        DAT_EVD_HANDLE other_evd = side.NewEvd(DAT_EVD_CR_FLAG);
        DAT_PSP_HANDLE second;
        Must(dat_psp_create(side.ia, Port(1), other_evd, DAT_PSP_CONSUMER_FLAG, &second));
        peer.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.sp_handle.psp_handle, first);
        const DAT_PORT_QUAL port = ParametersOf(request).remote_port_qual;
        Must(dat_cr_handoff(request.cr_handle, Port(1)));
        EXPECT_TRUE(IsEmpty(side.cr_evd));
        const DAT_CR_ARRIVAL_EVENT_DATA moved = NextRequest(other_evd);
        EXPECT_EQ(moved.sp_handle.psp_handle, second);
        EXPECT_EQ(moved.conn_qual, Port(1));
        const DAT_CR_PARAM param = ParametersOf(moved);
        EXPECT_EQ(PrivateDataOf(param), Pattern(25));
        EXPECT_EQ(param.remote_port_qual, port);
        DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(moved.cr_handle, ep, Pattern(10)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0), kPatience, Pattern(25));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(PrivateDataOf(event), Pattern(10));
        peer.Tell("done");
      });
}

// A reserved service point ends when its request arrives, and the next one has its qualifier.
TEST(CrHandoff, S_TheNextReservedPointHasThePort) {
  constexpr int kRounds = 100;
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EVD_HANDLE other_evd = side.NewEvd(DAT_EVD_CR_FLAG);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(1), ep, other_evd, &rsp));
        std::atomic<int> reserved{1};
        std::thread next([&] {
          for (int round = 0; round < kRounds; ++round) {
            const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(other_evd);
            EXPECT_EQ(dat_rsp_create(side.ia, Port(1), side.NewEp(), other_evd, &rsp),
                      DAT_RETURN{DAT_SUCCESS});
            ++reserved;
            EXPECT_EQ(Reject(request.cr_handle, 0, nullptr), DAT_RETURN{DAT_SUCCESS});
          }
        });
        side.Listen(Port(0));
        peer.Tell("listening");
        for (int round = 0; round < kRounds; ++round) {
          const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
          while (reserved <= round) sched_yield();
          Must(dat_cr_handoff(request.cr_handle, Port(1)));
        }
        next.join();
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        for (int round = 0; round < kRounds; ++round) {
          side.Connect(ep, Port(0));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
          Must(dat_ep_reset(ep));
        }
      });
}

// A hand-off gives a reserved endpoint back; an endpoint that was made for the request ends.
TEST(CrHandoff, S_TheEndpointIsGivenBack) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        side.Listen(Port(1), DAT_PSP_PROVIDER_FLAG);
        const DAT_PSP_HANDLE other = side.Listen(Port(2));
        peer.Tell("listening");
        for (DAT_CONN_QUAL from : {Port(0), Port(1)}) {
          const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
          EXPECT_EQ(request.conn_qual, from);
          const DAT_EP_HANDLE its = ParametersOf(request).local_ep_handle;
          Must(dat_cr_handoff(request.cr_handle, Port(2)));
          if (from == Port(0)) {
            EXPECT_EQ(its, ep);
            EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
          } else {
            EXPECT_TRUE(Fails(dat_ep_free(its), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
          }
          const DAT_CR_ARRIVAL_EVENT_DATA moved = NextRequest(side.cr_evd);
          EXPECT_EQ(moved.sp_handle.psp_handle, other);
          EXPECT_EQ(ParametersOf(moved).local_ep_handle, DAT_HANDLE_NULL);
          EXPECT_EQ(Reject(moved.cr_handle, 0, nullptr), DAT_RETURN{DAT_SUCCESS});
        }
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        for (DAT_CONN_QUAL to : {Port(0), Port(1)}) {
          side.Connect(ep, to);
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
          Must(dat_ep_reset(ep));
        }
      });
}

// The other point's dispatcher is full: the qualifier is valid, and the request can still be used.
TEST(CrHandoff, C098_TheOtherPointIsFull) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    const DAT_EVD_HANDLE evd =
        side.NewEvd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG), 1);
    DAT_PSP_HANDLE psp;
    Must(dat_psp_create(side.ia, Port(1), evd, DAT_PSP_CONSUMER_FLAG, &psp));
    DAT_EVENT event = {};
    event.event_number = DAT_SOFTWARE_EVENT;
    while (dat_evd_post_se(evd, &event) == DAT_RETURN{DAT_SUCCESS}) {
    }
    EXPECT_TRUE(Fails(dat_cr_handoff(cr, Port(1)), DAT_INSUFFICIENT_RESOURCES));
    ThenAGoodOneWorks(side, cr);
  });
}

TEST(CrHandoff, C098_NobodyThere) {
  WithRequest([](Side& side, DAT_CR_HANDLE cr) {
    EXPECT_TRUE(Fails(dat_cr_handoff(cr, Port(7)), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    ThenAGoodOneWorks(side, cr);
  });
}

}  // namespace
}  // namespace viaduct::tests
