// dat_psp_*, dat_rsp_*: uDAPL 1.2, the pages of those names; DAT checklist 99-104.
#include <netinet/in.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

DAT_RETURN TryListen(Side& side, DAT_CONN_QUAL qualifier) {
  DAT_PSP_HANDLE psp;
  return dat_psp_create(side.ia, qualifier, side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp);
}

// A client that connects once and expects `outcome`.
std::function<void(Peer&)> Client(DAT_CONN_QUAL qualifier, DAT_EVENT_NUMBER outcome) {
  return [=](Peer& peer) {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    peer.Await("listening");
    side.Connect(ep, qualifier);
    NextConnection(side.connect_evd, outcome, ep);
    peer.Tell("done");
  };
}

// Twice in one instance of the adapter, in two instances, and in two processes; with a qualifier
// that is a port, and with a hashed one.
TEST(Psp, C099_QualifierInUse) {
  for (DAT_CONN_QUAL qualifier :
       {DAT_CONN_QUAL{Port(0)}, DAT_CONN_QUAL{0x1234567800000000} + Port(0)}) {
    RunPair(
        [=](Peer& peer) {
          Side side, again;
          DAT_PSP_HANDLE psp = side.Listen(qualifier);
          EXPECT_TRUE(Fails(TryListen(side, qualifier), DAT_CONN_QUAL_IN_USE));
          EXPECT_TRUE(Fails(TryListen(again, qualifier), DAT_CONN_QUAL_IN_USE));
          peer.Tell("listening");
          peer.Await("tried");
          Must(dat_psp_free(psp));
          Must(TryListen(again, qualifier));
        },
        [=](Peer& peer) {
          Side side;
          peer.Await("listening");
          EXPECT_TRUE(Fails(TryListen(side, qualifier), DAT_CONN_QUAL_IN_USE));
          peer.Tell("tried");
        });
  }
}

// Names are hashed to a range of ports, each of which one process has. When others have all of
// them, the log says how to have more.
TEST(Psp, S_AllPortsOfAHashedNameAreTaken) {
  setenv("VIADUCT_PORT_COUNT", "16", 1);
  constexpr DAT_CONN_QUAL kFirst = 0x1234567800000000;
  constexpr int kNames = 200;  // most likely at each of the ports
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int i = 0; i < kNames; ++i) Must(TryListen(side, kFirst + DAT_CONN_QUAL(i)));
        peer.Tell("listening");
        peer.Await("tried");
      },
      [](Peer& peer) {
        Side side;
        peer.Await("listening");
        testing::internal::CaptureStderr();
        EXPECT_TRUE(Fails(TryListen(side, kFirst + kNames), DAT_CONN_QUAL_IN_USE));
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_NE(said.find("all 16 ports that it is hashed to are taken"), std::string::npos)
            << said;
        peer.Tell("tried");
      });
  unsetenv("VIADUCT_PORT_COUNT");
}

TEST(Psp, C099_FreeAndCreateWithAConnectionAlive) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE first = side.NewEp(), second = side.NewEp();
        side.PostReceive(first, 1);
        side.AcceptFrom(peer, first, Port(0));
        side.AcceptFrom(peer, second, Port(0));
        EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE first = side.NewEp(), second = side.NewEp();
        side.ConnectTo(peer, first, Port(0));
        side.ConnectTo(peer, second, Port(0));
        Must(side.TrySend(first, 1));
        peer.Await("done");
      });
}

TEST(Psp, S_Query) {
  RunAlone([] {
    Side side;
    DAT_PSP_HANDLE psp = side.Listen(Port(0), DAT_PSP_PROVIDER_FLAG);
    DAT_PSP_PARAM param;
    Must(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
    EXPECT_EQ(param.ia_handle, side.ia);
    EXPECT_EQ(param.conn_qual, Port(0));
    EXPECT_EQ(param.evd_handle, side.cr_evd);
    EXPECT_EQ(param.psp_flags, DAT_PSP_PROVIDER_FLAG);
    EXPECT_TRUE(Fails(dat_evd_free(side.cr_evd), DAT_INVALID_STATE));
    Must(dat_psp_free(psp));
    Must(dat_evd_free(side.cr_evd));
  });
}

TEST(Psp, S_Parameters) {
  RunAlone([] {
    Side side;
    DAT_PSP_HANDLE psp;
    DAT_CONN_QUAL any;
    for (int flags : {2, -1}) {
      const auto wrong = static_cast<DAT_PSP_FLAGS>(flags);
      EXPECT_TRUE(Fails(dat_psp_create(side.ia, Port(0), side.cr_evd, wrong, &psp),
                        DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
      EXPECT_TRUE(Fails(dat_psp_create_any(side.ia, &any, side.cr_evd, wrong, &psp),
                        DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    }
    EXPECT_TRUE(Fails(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, nullptr),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(
        Fails(dat_psp_create_any(side.ia, &any, side.cr_evd, DAT_PSP_CONSUMER_FLAG, nullptr),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(
        Fails(dat_psp_create_any(side.ia, nullptr, side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    psp = side.Listen(Port(0));  // the failed calls have left nothing there
    DAT_PSP_PARAM param;
    EXPECT_TRUE(Fails(dat_psp_query(psp, static_cast<DAT_PSP_PARAM_MASK>(0x100), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_psp_query(psp, DAT_PSP_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
  });
}

// An endpoint for which a request has come shows the requester, as the request does.
void ExpectPeer(const DAT_EP_PARAM& endpoint, const DAT_CR_PARAM& request) {
  ASSERT_NE(endpoint.remote_ia_address_ptr, nullptr);
  const auto address = [](const sockaddr* peer) {
    return reinterpret_cast<const sockaddr_in*>(peer)->sin_addr.s_addr;
  };
  EXPECT_EQ(address(endpoint.remote_ia_address_ptr), address(request.remote_ia_address_ptr));
  EXPECT_EQ(endpoint.remote_port_qual, request.remote_port_qual);
}

TEST(Psp, C100_ProviderMakesTheEndpoint) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0), DAT_PSP_PROVIDER_FLAG);
        peer.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        DAT_EP_HANDLE ep = ParametersOf(request).local_ep_handle;
        DAT_EP_PARAM param = ParametersOf(ep);
        EXPECT_EQ(param.ep_state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
        EXPECT_EQ(param.pz_handle, DAT_HANDLE_NULL);
        EXPECT_EQ(param.recv_evd_handle, DAT_HANDLE_NULL);
        EXPECT_EQ(param.request_evd_handle, DAT_HANDLE_NULL);
        EXPECT_EQ(param.connect_evd_handle, DAT_HANDLE_NULL);
        ExpectPeer(param, ParametersOf(request));
        EXPECT_TRUE(Fails(dat_ep_free(ep), DAT_INVALID_STATE));
        EXPECT_TRUE(Fails(side.TryAccept(request.cr_handle, DAT_HANDLE_NULL), DAT_INVALID_STATE));
        param.pz_handle = side.pz;
        param.recv_evd_handle = side.receive_evd;
        param.request_evd_handle = side.request_evd;
        param.connect_evd_handle = side.connect_evd;
        Must(dat_ep_modify(ep,
                           DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                               DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                           &param));
        side.PostReceive(ep, 4);
        Must(side.TryAccept(request.cr_handle, DAT_HANDLE_NULL));
        peer.Tell("accepted");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, 4u);
        peer.Tell("done");
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        Must(side.TrySend(side.ep, 1));
        peer.Await("done");
      });
}

TEST(Psp, C100_RejectTakesTheProvidersEndpoint) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0), DAT_PSP_PROVIDER_FLAG);
        peer.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        DAT_EP_HANDLE ep = ParametersOf(request).local_ep_handle;
        Must(Reject(request.cr_handle, 0, nullptr));
        DAT_EP_PARAM param;
        EXPECT_TRUE(Fails(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param), DAT_INVALID_HANDLE,
                          DAT_INVALID_HANDLE_EP));
        peer.Await("done");
      },
      Client(Port(0), DAT_CONNECTION_EVENT_PEER_REJECTED));
}

TEST(Psp, C101_AnyGivesDistinctUnusedQualifiers) {
  RunPair(
      [](Peer& peer) {
        Side side;
        std::set<DAT_CONN_QUAL> seen;
        DAT_CONN_QUAL qualifier = 0;
        DAT_PSP_HANDLE psp;
        for (int i = 0; i < 10; ++i) {
          Must(dat_psp_create_any(side.ia, &qualifier, side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
          EXPECT_GE(qualifier, 1024u);
          EXPECT_TRUE(seen.insert(qualifier).second);
          DAT_PSP_PARAM param;
          Must(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
          EXPECT_EQ(param.conn_qual, qualifier);
          EXPECT_TRUE(Fails(TryListen(side, qualifier), DAT_CONN_QUAL_IN_USE));
        }
        peer.Send(qualifier);
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.sp_handle.psp_handle, psp);
        EXPECT_EQ(request.conn_qual, qualifier);
        Must(side.TryAccept(request.cr_handle, side.NewEp()));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.Connect(ep, peer.Receive<DAT_CONN_QUAL>());
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Tell("done");
      });
}

TEST(Rsp, C102_OneRequestForOneEndpoint) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_RESERVED);
        EXPECT_TRUE(Fails(dat_ep_free(ep), DAT_INVALID_STATE));
        DAT_RSP_PARAM param;
        Must(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
        EXPECT_EQ(param.ia_handle, side.ia);
        EXPECT_EQ(param.conn_qual, Port(0));
        EXPECT_EQ(param.evd_handle, side.cr_evd);
        EXPECT_EQ(param.ep_handle, ep);
        peer.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.sp_handle.rsp_handle, DAT_HANDLE_NULL);
        EXPECT_EQ(request.conn_qual, Port(0));
        EXPECT_EQ(ParametersOf(request).local_ep_handle, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
        ExpectPeer(ParametersOf(ep), ParametersOf(request));
        EXPECT_EQ(ParametersOf(ep).local_port_qual, Port(0));
        EXPECT_TRUE(Fails(dat_ep_free(ep), DAT_INVALID_STATE));  // C075
        peer.Tell("taken");
        peer.Await("refused");
        EXPECT_TRUE(IsEmpty(side.cr_evd));
        Must(side.TryAccept(request.cr_handle, DAT_HANDLE_NULL));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE first = side.NewEp(), second = side.NewEp();
        peer.Await("listening");
        side.Connect(first, Port(0));
        peer.Await("taken");
        side.Connect(second, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, second);
        peer.Tell("refused");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, first);
        peer.Tell("done");
      });
}

TEST(Rsp, C102_RejectUnreservesTheEndpoint) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        peer.Tell("listening");
        Must(Reject(NextRequest(side.cr_evd).cr_handle, 0, nullptr));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
        EXPECT_EQ(ParametersOf(ep).remote_ia_address_ptr, nullptr);
        peer.Await("done");
      },
      Client(Port(0), DAT_CONNECTION_EVENT_PEER_REJECTED));
}

// When its request has come, a reserved service point is gone, and holds nothing of the program's.
TEST(Rsp, C102_IsGoneWhenItsRequestIsThere) {
  constexpr int kRounds = 200;
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int i = 0; i < kRounds; ++i) {
          DAT_EVD_HANDLE evd = side.NewEvd(DAT_EVD_CR_FLAG);
          DAT_EP_HANDLE ep = side.NewEp();
          DAT_RSP_HANDLE rsp;
          Must(dat_rsp_create(side.ia, Port(0), ep, evd, &rsp));
          peer.Tell("listening");
          DAT_EVENT event;
          while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) == DAT_QUEUE_EMPTY) {
          }
          Must(Reject(event.event_data.cr_arrival_event_data.cr_handle, 0, nullptr));
          Must(dat_evd_free(evd));
          Must(dat_ep_free(ep));
          peer.Await("rejected");
        }
      },
      [](Peer& peer) {
        Side side;
        for (int i = 0; i < kRounds; ++i) {
          DAT_EP_HANDLE ep = side.NewEp();
          peer.Await("listening");
          side.Connect(ep, Port(0));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
          Must(dat_ep_free(ep));
          peer.Tell("rejected");
        }
      });
}

TEST(Rsp, C102_FreeUnreservesTheEndpoint) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    side.PostReceive(ep, 1);
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    Must(dat_rsp_free(rsp));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    EXPECT_TRUE(Fails(dat_rsp_free(rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP));
    EXPECT_TRUE(IsEmpty(side.receive_evd));
    // When its request comes, the point goes, and the endpoint belongs to the request.
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    side.Connect(side.NewEp(), Port(0));
    const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
    DAT_RSP_PARAM param;
    while (dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param) == DAT_SUCCESS) {
    }
    EXPECT_TRUE(Fails(dat_rsp_free(rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    Must(Reject(request.cr_handle, 0, nullptr));
    Must(dat_ep_free(ep));
  });
}

// A request that finds no room is refused, and the point waits for another one.
TEST(Rsp, S_AFullDispatcherLeavesTheEndpointReserved) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const DAT_EVD_HANDLE evd =
            side.NewEvd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG), 1);
        DAT_EVENT event = {};
        event.event_number = DAT_SOFTWARE_EVENT;
        while (dat_evd_post_se(evd, &event) == DAT_RETURN{DAT_SUCCESS}) {
        }
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, evd, &rsp));
        peer.Tell("full");
        peer.Await("refused");
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_RESERVED);
        while (dat_evd_dequeue(evd, &event) == DAT_RETURN{DAT_SUCCESS}) {
        }
        peer.Tell("empty");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(evd);
        EXPECT_EQ(ParametersOf(request).local_ep_handle, ep);
        Must(side.TryAccept(request.cr_handle, DAT_HANDLE_NULL));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("full");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
        Must(dat_ep_reset(ep));
        peer.Tell("refused");
        peer.Await("empty");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Tell("done");
      });
}

TEST(Rsp, C102_QualifierInUse) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE first = side.NewEp(), second = side.NewEp();
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), first, side.cr_evd, &rsp));
    DAT_RSP_HANDLE other;
    EXPECT_TRUE(
        Fails(dat_rsp_create(side.ia, Port(0), second, side.cr_evd, &other), DAT_CONN_QUAL_IN_USE));
    EXPECT_EQ(StateOf(second), DAT_EP_STATE_UNCONNECTED);
    EXPECT_TRUE(
        Fails(dat_rsp_create(side.ia, Port(1), first, side.cr_evd, &other), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(first), DAT_EP_STATE_RESERVED);
    EXPECT_TRUE(Fails(TryListen(side, Port(0)), DAT_CONN_QUAL_IN_USE));
  });
}

TEST(Rsp, C103_NoEndpointMakesOne) {
  RunAlone([] {
    Side side;
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), DAT_HANDLE_NULL, side.cr_evd, &rsp));
    DAT_RSP_PARAM param;
    Must(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
    ASSERT_NE(param.ep_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(StateOf(param.ep_handle), DAT_EP_STATE_RESERVED);
    Must(dat_rsp_free(rsp));
    EXPECT_EQ(StateOf(param.ep_handle), DAT_EP_STATE_UNCONNECTED);
    Must(dat_ep_free(param.ep_handle));
  });
}

// A call that fails must not leave an endpoint either: the adapter could not be closed.
TEST(Rsp, C103_NoEndpointIsLeftWhereTheNameIsInUse) {
  RunAlone([] {
    Side side;
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), side.NewEp(), side.cr_evd, &rsp));
    char adapter[] = "soft0";
    DAT_IA_HANDLE other;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
    Must(dat_ia_open(adapter, 8, &async, &other));
    Must(dat_evd_create(other, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
    DAT_RSP_HANDLE second;
    EXPECT_TRUE(
        Fails(dat_rsp_create(other, Port(0), DAT_HANDLE_NULL, evd, &second), DAT_CONN_QUAL_IN_USE));
    Must(dat_evd_free(evd));
    Must(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

// The endpoint that the call makes cannot be used yet: the consumer gives it a zone and
// dispatchers, before the request comes or when it is there.
TEST(Rsp, C103_TheEndpointThatItMakesAcceptsOnceItIsConfigured) {
  for (const bool early : {true, false}) {
    SCOPED_TRACE(early);
    RunPair(
        [early](Peer& peer) {
          Side side;
          DAT_RSP_HANDLE rsp;
          Must(dat_rsp_create(side.ia, Port(0), DAT_HANDLE_NULL, side.cr_evd, &rsp));
          DAT_RSP_PARAM point;
          Must(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &point));
          DAT_EP_PARAM param = {};
          param.pz_handle = side.pz;
          param.recv_evd_handle = side.receive_evd;
          param.request_evd_handle = side.request_evd;
          param.connect_evd_handle = side.connect_evd;
          const auto configure = [&] {
            Must(dat_ep_modify(point.ep_handle,
                               DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                   DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                                   DAT_EP_FIELD_CONNECT_EVD_HANDLE,
                               &param));
          };
          if (early) configure();
          peer.Tell("listening");
          const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
          if (!early) configure();
          Must(side.TryAccept(request.cr_handle, DAT_HANDLE_NULL));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, point.ep_handle);
          peer.Await("done");
        },
        Client(Port(0), DAT_CONNECTION_EVENT_ESTABLISHED));
  }
}

// A server that ends in order although a request waits in its queue.
TEST(Psp, S_RequestEndsWithItsDispatcher) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_PSP_HANDLE psp = side.Listen(Port(0));
        DAT_CNO_HANDLE cno;
        Must(dat_cno_create(side.ia, {nullptr, nullptr}, &cno));
        Must(dat_evd_modify_cno(side.cr_evd, cno));
        peer.Tell("listening");
        DAT_EVD_HANDLE told;
        Must(dat_cno_wait(cno, kPatience, &told));
        Must(dat_psp_free(psp));
        Must(dat_evd_free(side.cr_evd));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0), DAT_TIMEOUT_INFINITE);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
        peer.Tell("done");
      });
}

TEST(Psp, C104_PendingRequestOutlivesIt) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_PSP_HANDLE psp = side.Listen(Port(0));
        peer.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        Must(dat_psp_free(psp));
        DAT_EP_HANDLE other = side.NewEp();
        side.Connect(other, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, other);
        Must(side.TryAccept(request.cr_handle, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      Client(Port(0), DAT_CONNECTION_EVENT_ESTABLISHED));
}

}  // namespace
}  // namespace viaduct::tests
