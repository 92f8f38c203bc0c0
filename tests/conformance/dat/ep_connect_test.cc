// dat_ep_connect: uDAPL 1.2, the page of that name; DAT checklist 76-90.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

// Asks for a connection in a state that forbids it: nothing happens.
void ExpectRefused(Side& side, DAT_EP_HANDLE ep, DAT_EP_STATE state) {
  EXPECT_EQ(StateOf(ep), state);
  EXPECT_TRUE(Fails(side.TryConnect(ep, Port(9)), DAT_INVALID_STATE));
  EXPECT_EQ(StateOf(ep), state);
}

TEST(EpConnect, C076_Reserved) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    ExpectRefused(side, ep, DAT_EP_STATE_RESERVED);
  });
}

TEST(EpConnect, C076_PassivePending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        peer.Tell("listening");
        NextRequest(side.cr_evd);
        ExpectRefused(side, ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Await("done");
      });
}

TEST(EpConnect, C076_ActivePending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        ExpectRefused(side, ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
        peer.Tell("done");
      });
}

TEST(EpConnect, C076_TentativePending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0), DAT_PSP_PROVIDER_FLAG);
        peer.Tell("listening");
        DAT_EP_HANDLE ep = ParametersOf(NextRequest(side.cr_evd)).local_ep_handle;
        ExpectRefused(side, ep, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Await("done");
      });
}

// On a device whose accept needs no answer of the other side, COMPLETION_PENDING does not last.
TEST(EpConnect, C076_CompletionPending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.Listen(Port(0));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        StoppedPeer stopped(peer);
        Must(side.TryAccept(cr, ep));
        const DAT_EP_STATE state = StateOf(ep);
        EXPECT_TRUE(state == DAT_EP_STATE_COMPLETION_PENDING || state == DAT_EP_STATE_CONNECTED);
        EXPECT_TRUE(Fails(side.TryConnect(ep, Port(9)), DAT_INVALID_STATE));
        stopped.Continue();
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Await("done");
      });
}

TEST(EpConnect, C076_ConnectedAndDisconnected) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        ExpectRefused(side, ep, DAT_EP_STATE_CONNECTED);
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        ExpectRefused(side, ep, DAT_EP_STATE_DISCONNECTED);
        peer.Tell("done");
      });
}

TEST(EpConnect, C076_DisconnectPending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 4096);
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Send(memory.Remote());
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, 4096);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        StoppedPeer stopped(peer);
        DAT_LMR_TRIPLET local = memory.Local(0, 4096);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
        ExpectRefused(side, ep, DAT_EP_STATE_DISCONNECT_PENDING);
        stopped.Continue();
        peer.Tell("done");
      });
}

TEST(EpConnect, C077_TimeoutZero) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    EXPECT_TRUE(Fails(side.TryConnect(ep, Port(0), 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(EpConnect, C077_PrivateDataSize) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    std::vector<uint8_t> data(static_cast<size_t>(side.provider.max_private_data_size) + 1);
    auto connect = [&](DAT_COUNT size, void* pointer) {
      return dat_ep_connect(ep, side.attributes.ia_address_ptr, Port(0), kSecond, size, pointer,
                            DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    };
    EXPECT_TRUE(Fails(connect(-1, data.data()), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(Fails(connect(side.provider.max_private_data_size + 1, data.data()),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(Fails(connect(1, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(EpConnect, C078_QualityOfService) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    EXPECT_EQ(side.provider.dat_qos_supported, DAT_QOS_BEST_EFFORT);
    for (DAT_QOS qos :
         {DAT_QOS_HIGH_THROUGHPUT, DAT_QOS_LOW_LATENCY, DAT_QOS_ECONOMY, DAT_QOS_PREMIUM}) {
      EXPECT_TRUE(Fails(dat_ep_connect(ep, side.attributes.ia_address_ptr, Port(0), kSecond, 0,
                                       nullptr, qos, DAT_CONNECT_DEFAULT_FLAG),
                        DAT_MODEL_NOT_SUPPORTED));
    }
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(EpConnect, C078_Multipath) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    EXPECT_EQ(side.provider.supports_multipath, DAT_FALSE);
    auto connect = [&](int flags) {
      return dat_ep_connect(ep, side.attributes.ia_address_ptr, Port(0), kSecond, 0, nullptr,
                            DAT_QOS_BEST_EFFORT, static_cast<DAT_CONNECT_FLAGS>(flags));
    };
    EXPECT_TRUE(Fails(connect(DAT_CONNECT_MULTIPATH_FLAG), DAT_MODEL_NOT_SUPPORTED));
    EXPECT_TRUE(Fails(connect(0x40), DAT_INVALID_PARAMETER, DAT_INVALID_ARG8));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(EpConnect, C079_Address) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    auto connect = [&](DAT_IA_ADDRESS_PTR address) {
      return dat_ep_connect(ep, address, Port(0), kSecond, 0, nullptr, DAT_QOS_BEST_EFFORT,
                            DAT_CONNECT_DEFAULT_FLAG);
    };
    EXPECT_TRUE(Fails(connect(nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    sockaddr_in address = Ipv4("127.0.0.1");
    address.sin_family = AF_APPLETALK;
    EXPECT_TRUE(Fails(connect(Pointer(address)), DAT_INVALID_ADDRESS));
    address.sin_family = AF_UNSPEC;
    EXPECT_TRUE(Fails(connect(Pointer(address)), DAT_INVALID_ADDRESS));
    address = Ipv4("0.0.0.0");
    EXPECT_TRUE(Fails(connect(Pointer(address)), DAT_INVALID_ADDRESS));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
  });
}

void ExpectReachesThisHost(DAT_IA_ADDRESS_PTR address) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Await("done");
      },
      [address](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        Must(dat_ep_connect(ep, address, Port(0), kPatience, 0, nullptr, DAT_QOS_BEST_EFFORT,
                            DAT_CONNECT_DEFAULT_FLAG));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(ParametersOf(ep).remote_ia_address_ptr->sa_family, AF_INET);
        peer.Await("accepted");
        peer.Tell("done");
      });
}

// The port inside the address means nothing.
TEST(EpConnect, C079_LoopbackReachesThisHost) {
  sockaddr_in address = Ipv4("127.0.0.1");
  address.sin_port = htons(1);
  ExpectReachesThisHost(Pointer(address));
}

// An IPv4-mapped IPv6 address, as DAT's header makes them on Linux.
TEST(EpConnect, C079_IPv4MappedReachesThisHost) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  ASSERT_EQ(inet_pton(AF_INET6, "0:0:0:0:0:FFFF:127.0.0.1", &address.sin6_addr), 1);
  ExpectReachesThisHost(reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address));
}

TEST(EpConnect, C080_StateIsActiveConnectionPending) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        NextRequest(side.cr_evd);
        peer.Tell("arrived");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
        peer.Await("arrived");
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
        EXPECT_TRUE(IsEmpty(side.connect_evd));
        peer.Tell("done");
      });
}

TEST(EpConnect, C081_LocalPortIsThePeersRemotePort) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.Listen(Port(0));
        peer.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.conn_qual, Port(0));
        const DAT_CR_PARAM param = ParametersOf(request);
        EXPECT_NE(param.remote_port_qual, 0u);
        EXPECT_EQ(param.remote_ia_address_ptr->sa_family, AF_INET);
        peer.Send(param.remote_port_qual);
        const DAT_PORT_QUAL port = param.remote_port_qual;
        Must(side.TryAccept(request.cr_handle, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(ParametersOf(ep).remote_port_qual, port);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        EXPECT_EQ(ParametersOf(ep).local_port_qual, peer.Receive<DAT_PORT_QUAL>());
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        const DAT_EP_PARAM param = ParametersOf(ep);
        EXPECT_EQ(param.remote_port_qual, Port(0));
        ASSERT_NE(param.remote_ia_address_ptr, nullptr);
        EXPECT_EQ(param.remote_ia_address_ptr->sa_family, AF_INET);
        peer.Tell("done");
      });
}

void PrivateDataOfRequest(DAT_CONN_QUAL qualifier) {
  RunPair(
      [=](Peer& peer) {
        Side side;
        side.Listen(qualifier);
        peer.Tell("listening");
        for (int i = 0; i < 3; ++i) {
          const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
          EXPECT_EQ(request.conn_qual, qualifier);
          EXPECT_EQ(PrivateDataOf(ParametersOf(request)), Pattern(peer.Receive<size_t>()));
          Must(Reject(request.cr_handle, 0, nullptr));
        }
      },
      [=](Peer& peer) {
        Side side;
        peer.Await("listening");
        for (size_t size : {0, 1, side.provider.max_private_data_size}) {
          DAT_EP_HANDLE ep = side.NewEp();
          side.Connect(ep, qualifier, kPatience, Pattern(size));
          peer.Send(size);
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
        }
      });
}

TEST(EpConnect, C082_PrivateDataIsExact) { PrivateDataOfRequest(Port(0)); }
// A qualifier that is no port travels in a header of the library, which programs do not see.
TEST(EpConnect, C082_PrivateDataIsExactWithLargeQualifier) {
  PrivateDataOfRequest(0x1234567800000000 + Port(0));
}

TEST(EpConnect, C083_PrivateDataOfAccept) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        for (size_t size : {0, 1, side.provider.max_private_data_size}) {
          DAT_EP_HANDLE ep = side.NewEp();
          Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep, Pattern(size)));
          const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          EXPECT_EQ(event.private_data_size, 0);
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_CONNECTED);
          peer.Send(size);
        }
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        peer.Await("listening");
        for (int i = 0; i < 3; ++i) {
          DAT_EP_HANDLE ep = side.NewEp();
          side.Connect(ep, Port(0), kPatience, Pattern(5, 99));
          const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          EXPECT_EQ(PrivateDataOf(event), Pattern(peer.Receive<size_t>()));
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_CONNECTED);
        }
        peer.Tell("done");
      });
}

TEST(EpConnect, C084_PrivateDataStaysUntilReset) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.Listen(Port(0));
        peer.Tell("listening");
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep, Pattern(48)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_EQ(PrivateDataOf(event), Pattern(48));
        peer.Tell("done");
      });
}

TEST(EpConnect, C085_NobodyListens) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    side.PostReceive(ep, 1);
    side.PostReceive(ep, 2);
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
    side.ExpectFlushedReceives(ep, 1, 2);
    EXPECT_TRUE(IsEmpty(side.connect_evd));
  });
}

TEST(EpConnect, C085_NobodyListensOnLargeQualifier) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, 0x1234567800000000 + Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
  });
}

// Some servers announce where they are before they listen there.
TEST(EpConnect, S_ListenerThatComesALittleLateIsFound) {
  RunAlone([] {
    setenv("VIADUCT_DAT_GRACE_MS", "60000", 1);
    Side side;
    DAT_EP_HANDLE ep = side.NewEp(), other = side.NewEp();
    side.Connect(ep, Port(0));
    side.Connect(other, Port(1));
    Must(dat_ep_disconnect(other, DAT_CLOSE_ABRUPT_FLAG));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, other);
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    side.Listen(Port(0));
    NextRequest(side.cr_evd);
    EXPECT_TRUE(IsEmpty(side.connect_evd));
  });
}

TEST(EpConnect, C086_BacklogIsTheQueueOfTheDispatcher) {
  constexpr int kBacklog = 2, kRequests = 5;
  RunPair(
      [=](Peer& peer) {
        Side side;
        DAT_EVD_HANDLE cr_evd = side.NewEvd(DAT_EVD_CR_FLAG, kBacklog);
        DAT_PSP_HANDLE psp;
        Must(dat_psp_create(side.ia, Port(0), cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
        peer.Tell("listening");
        peer.Await("refused");
        for (int i = 0; i < kBacklog; ++i) {
          DAT_EP_HANDLE ep = side.NewEp();
          Must(side.TryAccept(NextRequest(cr_evd).cr_handle, ep));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        }
        EXPECT_TRUE(IsEmpty(cr_evd));
        peer.Await("done");
      },
      [=](Peer& peer) {
        setenv("VIADUCT_DAT_GRACE_MS", "60000", 1);  // only where nobody listens
        Side side;
        peer.Await("listening");
        for (int i = 0; i < kRequests; ++i) side.Connect(side.NewEp(), Port(0));
        for (int i = 0; i < kRequests - kBacklog; ++i) {
          Next(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
        }
        peer.Tell("refused");
        for (int i = 0; i < kBacklog; ++i) {
          Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        }
        peer.Tell("done");
      });
}

TEST(EpConnect, C087_PeerRejected) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        const std::vector<uint8_t> reason = Pattern(20);
        Must(Reject(NextRequest(side.cr_evd).cr_handle, 20, reason.data()));
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 1);
        peer.Await("listening");
        side.Connect(ep, Port(0));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
        // In 1.2 a reject has no private data.
        EXPECT_EQ(PrivateDataOf(event),
                  VIADUCT_TEST_DAT == 20 ? Pattern(20) : std::vector<uint8_t>());
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        side.ExpectFlushedReceives(ep, 1, 1);
      });
}

TEST(EpConnect, C088_Unreachable) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    side.PostReceive(ep, 1);
    sockaddr_in nowhere = Ipv4("192.0.2.1");
    Must(dat_ep_connect(ep, Pointer(nowhere), Port(0), kSecond, 0, nullptr, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG));
    const DAT_EVENT event = Next(side.connect_evd);
    if (HasOwnNetwork()) {
      EXPECT_EQ(event.event_number, DAT_CONNECTION_EVENT_UNREACHABLE);
    } else {  // what the host's network does with it is not ours to say
      EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_UNREACHABLE ||
                  event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT);
    }
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
    side.ExpectFlushedReceives(ep, 1, 1);
  });
}

void TimesOut(DAT_TIMEOUT timeout) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        peer.Await("done");  // and never answers
      },
      [=](Peer& peer) {
        Side side;
        peer.Await("listening");
        bool unheard = true;
        for (DAT_TIMEOUT limit = timeout; unheard; limit *= 2) {
          DAT_EP_HANDLE ep = side.NewEp();
          side.PostReceive(ep, 1);
          const uint64_t begin = NowMicroseconds();
          side.Connect(ep, Port(0), limit);
          const DAT_EVENT_NUMBER said = Next(side.connect_evd).event_number;
          const uint64_t took = NowMicroseconds() - begin;
          EXPECT_GE(took, limit);
          EXPECT_LT(took, limit + 5 * kSecond);
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
          side.ExpectFlushedReceives(ep, 1, 1);
          // A busy host may not have answered at all in so short a time.
          unheard = said == DAT_CONNECTION_EVENT_UNREACHABLE && limit < 4 * kSecond;
          if (unheard) continue;
          EXPECT_EQ(said, DAT_CONNECTION_EVENT_TIMED_OUT);
        }
        peer.Tell("done");
      });
}

TEST(EpConnect, C089_TimesOutAfter50Milliseconds) { TimesOut(50 * kMillisecond); }
TEST(EpConnect, C089_TimesOutAfterASecond) { TimesOut(kSecond); }

// A TCP listener at Port(0) of `address` that is not the library's; -1 if there can be none.
int ListenAsStranger(sockaddr_in* address) {
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(stranger, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  address->sin_port = htons(Port(0));
  if (bind(stranger, Pointer(*address), sizeof *address) != 0 || listen(stranger, 1) != 0)
    return -1;
  return stranger;
}

// A host that accepts the TCP connection and says nothing more.
TEST(EpConnect, C089_SilentHost) {
  if (Wire() == "shm") GTEST_SKIP() << "a stranger's TCP port is reached over TCP only";
  RunAlone([] {
    sockaddr_in address = Ipv4("127.0.0.1");
    const int stranger = ListenAsStranger(&address);
    ASSERT_GE(stranger, 0);
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    Must(dat_ep_connect(ep, Pointer(address), Port(0), 2 * kSecond, 0, nullptr, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_TIMED_OUT, ep);
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
    close(stranger);
  });
}

// A peer is told how many reads at a time an endpoint answers, and how many it may have in flight.
TEST(EpConnect, S_APeerIsToldTheDepthOfReads) {
  if (Wire() != "iwarp") GTEST_SKIP() << "iWARP over TCP, to a stranger";
  RunAlone([] {
    sockaddr_in address = Ipv4("127.0.0.1");
    const int stranger = ListenAsStranger(&address);
    ASSERT_GE(stranger, 0);
    Side side;
    DAT_EP_ATTR attributes = ParametersOf(side.NewEp()).ep_attr;
    attributes.max_rdma_read_in = 3;
    attributes.max_rdma_read_out = 5;
    DAT_EP_HANDLE ep = side.NewEp(&attributes);
    Must(dat_ep_connect(ep, Pointer(address), Port(0), DAT_TIMEOUT_INFINITE, 0, nullptr,
                        DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    const int dialled = accept(stranger, nullptr, nullptr);
    ASSERT_GE(dialled, 0);
    // RFC 6581: an enhanced request. Its first word is IRD and ORD, with two more bits each.
    unsigned char request[24];
    ASSERT_EQ(recv(dialled, request, sizeof request, MSG_WAITALL),
              static_cast<ssize_t>(sizeof request));
    EXPECT_EQ(request[17], 2) << "revision";
    EXPECT_EQ((request[20] << 8 | request[21]) & 0x3fff, 3) << "IRD";
    EXPECT_EQ((request[22] << 8 | request[23]) & 0x3fff, 5) << "ORD";
    close(dialled);
    close(stranger);
  });
}

TEST(EpConnect, C090_InfiniteNeverTimesOut) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.Listen(Port(0));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        peer.Await("waited");
        Must(side.TryAccept(cr, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0), DAT_TIMEOUT_INFINITE);
        DAT_EVENT event;
        DAT_COUNT more;
        EXPECT_TRUE(Fails(dat_evd_wait(side.connect_evd, 1200 * kMillisecond, 1, &event, &more),
                          DAT_TIMEOUT_EXPIRED));
        peer.Tell("waited");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
