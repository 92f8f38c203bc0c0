// A VIPL program and a DAT program on one connection.
#include <sched.h>
#include <vipl.h>

#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/cross/dat_end.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;
constexpr DAT_EVENT_NUMBER kEstablished = DAT_CONNECTION_EVENT_ESTABLISHED;

// A direct port, and a name that has to be hashed.
DAT_CONN_QUAL Qualifier(bool direct) { return direct ? Port(0) : 0x7700000000000000ull + Port(0); }

std::string Discriminator(DAT_CONN_QUAL qualifier) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(qualifier >> (56 - 8 * i));
  return bytes;
}

VIP_RETURN ConnectTo(Side& side, DAT_CONN_QUAL qualifier) {
  NetAddress local = side.nic.Address("client");
  NetAddress remote = side.nic.Address(Discriminator(qualifier));
  VIP_RETURN result;
  do {
    result = VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer);
  } while (result == VIP_NO_MATCH);
  return result;
}

// DAT does not ask again by itself. Leaves one receive posted.
void ConnectUntilThere(DatEnd& dat, DAT_CONN_QUAL qualifier, DAT_EVENT_NUMBER expected) {
  DAT_EVENT_NUMBER outcome;
  do {
    dat.PostReceive();
    ASSERT_EQ(dat.Connect(qualifier), static_cast<DAT_RETURN>(DAT_SUCCESS));
    outcome = dat.NextConnectionEvent();
    if (outcome == DAT_CONNECTION_EVENT_NON_PEER_REJECTED) {
      dat.Reset();
      sched_yield();
    }
  } while (outcome == DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  EXPECT_EQ(outcome, expected);
}

TEST(Cross, AViplClientReachesADatServer) {
  for (bool direct : {true, false}) {
    RunPair(
        [direct](Peer& peer) {
          DatEnd dat;
          dat.PostReceive();
          dat.Listen(Qualifier(direct));
          DAT_CR_PARAM shown;
          const DAT_CR_HANDLE request = dat.NextRequest(&shown);
          EXPECT_EQ(shown.private_data_size, 0) << "the engine's header is not the consumer's";
          EXPECT_EQ(VipConnectReject(request), VIP_INVALID_PARAMETER) << "DAT's to answer";
          dat.Accept(request);
          EXPECT_EQ(dat.NextMessage(), "from vipl");
          dat.Send("from dat");
          peer.Await("done");
        },
        [direct](Peer& peer) {
          Side side;
          side.Receive(8);
          ASSERT_EQ(ConnectTo(side, Qualifier(direct)), VIP_SUCCESS);
          EXPECT_EQ(side.peer.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY) << "its own";
          EXPECT_EQ(side.peer.MaxTransferSize, side.QueryVi().MaxTransferSize);
          side.SendText(0, "from vipl");
          EXPECT_EQ(side.TextOf(side.NextReceive()), "from dat");
          peer.Tell("done");
        });
  }
}

TEST(Cross, ADatClientReachesAViplServer) {
  for (bool direct : {true, false}) {
    RunPair(
        [direct](Peer& peer) {
          Side side(Attributes(VIP_SERVICE_RELIABLE_RECEPTION, 40000));
          side.Receive(8);
          const VIP_CONN_HANDLE connection = side.TakeRequest(Discriminator(Qualifier(direct)));
          EXPECT_EQ(side.requester.host(), side.nic.Address("").host());
          ASSERT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS)
              << "level and size match whatever VI accepts";
          const auto port = peer.Receive<DAT_PORT_QUAL>();
          std::string qualifier(8, '\0');
          qualifier[6] = static_cast<char>(port >> 8);
          qualifier[7] = static_cast<char>(port);
          EXPECT_EQ(side.requester.discriminator(), qualifier) << "its port";
          EXPECT_EQ(side.TextOf(side.NextReceive()), "from dat");
          // Confirmed by the other side, which must be there until then.
          side.SendText(0, "from vipl");
          peer.Tell("done");
        },
        [direct](Peer& peer) {
          DatEnd dat;
          ConnectUntilThere(dat, Qualifier(direct), kEstablished);
          DAT_EP_PARAM shown;
          EXPECT_EQ(dat_ep_query(dat.ep, DAT_EP_FIELD_ALL, &shown),
                    static_cast<DAT_RETURN>(DAT_SUCCESS));
          peer.Send(shown.local_port_qual);
          dat.Send("from dat");
          EXPECT_EQ(dat.NextMessage(), "from vipl");
          peer.Await("done");
        });
  }
}

TEST(Cross, ADatServerRejectsAViplClient) {
  RunPair(
      [](Peer& peer) {
        DatEnd dat;
        dat.Listen(Qualifier(true));
        DAT_CR_PARAM shown;
        EXPECT_EQ(dat_cr_reject(dat.NextRequest(&shown), 0, nullptr),
                  static_cast<DAT_RETURN>(DAT_SUCCESS));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        EXPECT_EQ(ConnectTo(side, Qualifier(true)), VIP_REJECT);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("done");
      });
}

TEST(Cross, AViplServerRejectsADatClient) {
  RunPair(
      [](Peer& peer) {
        Side side;
        EXPECT_EQ(VipConnectReject(side.TakeRequest(Discriminator(Qualifier(true)))), VIP_SUCCESS);
        peer.Await("done");
      },
      [](Peer& peer) {
        DatEnd dat;
        ConnectUntilThere(dat, Qualifier(true), DAT_CONNECTION_EVENT_PEER_REJECTED);
        peer.Tell("done");
      });
}

TEST(Cross, TheEndOfTheConnectionIsSeenOnBothFaces) {
  for (bool vipl_ends : {true, false}) {
    RunPair(
        [vipl_ends](Peer& peer) {
          DatEnd dat;
          dat.PostReceive();
          dat.Listen(Qualifier(true));
          DAT_CR_PARAM shown;
          dat.Accept(dat.NextRequest(&shown));
          if (!vipl_ends) {
            EXPECT_EQ(dat_ep_disconnect(dat.ep, DAT_CLOSE_ABRUPT_FLAG),
                      static_cast<DAT_RETURN>(DAT_SUCCESS));
          }
          EXPECT_EQ(dat.NextConnectionEvent(),
                    static_cast<DAT_EVENT_NUMBER>(DAT_CONNECTION_EVENT_DISCONNECTED));
          peer.Await("done");
        },
        [vipl_ends](Peer& peer) {
          Side side;
          ErrorLog errors(side.nic.handle);
          side.Receive(0);
          ASSERT_EQ(ConnectTo(side, Qualifier(true)), VIP_SUCCESS);
          if (vipl_ends) {
            EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
          } else {
            VIP_ERROR_DESCRIPTOR error;
            ASSERT_TRUE(errors.Next(&error));
            EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
            EXPECT_EQ(side.State(), VIP_STATE_ERROR);
          }
          EXPECT_EQ(side.DrainFlushed(), 1);
          peer.Tell("done");
        });
  }
}

TEST(Cross, OneProcessConnectsItsViToItsEndpoint) {
  RunAlone([] {
    Side side;
    DatEnd dat;
    side.Receive(8);
    dat.PostReceive();
    dat.Listen(Qualifier(true));
    VIP_RETURN result = VIP_NOT_DONE;
    std::thread client([&] { result = ConnectTo(side, Qualifier(true)); });
    DAT_CR_PARAM shown;
    dat.Accept(dat.NextRequest(&shown));
    client.join();
    ASSERT_EQ(result, VIP_SUCCESS);
    side.SendText(0, "from vipl");
    EXPECT_EQ(dat.NextMessage(), "from vipl");
    dat.Send("from dat");
    EXPECT_EQ(side.TextOf(side.NextReceive()), "from dat");
  });
}

// A waiter that stood in line behind another process's has left; its name lingers for a moment, at
// a port that nobody asks for.
TEST(Cross, ADatServerHasNoPlaceInAViplLine) {
  RunPair(
      [](Peer&) {
        Side side;
        EXPECT_EQ(VipConnectReject(side.TakeRequest(Discriminator(Qualifier(true)))), VIP_SUCCESS);
      },
      [](Peer&) {
        Side side;
        DatEnd dat;
        const auto listen = [&] {
          return static_cast<DAT_UINT32>(DAT_GET_TYPE(dat.TryToListen(Qualifier(true))));
        };
        while (listen() != DAT_CONN_QUAL_IN_USE) sched_yield();
        NetAddress local = side.nic.Address(Discriminator(Qualifier(true)));
        VIP_CONN_HANDLE connection;
        EXPECT_EQ(VipConnectWait(side.nic.handle, local.get(), 0, side.requester.get(), &side.peer,
                                 &connection),
                  VIP_TIMEOUT);
        EXPECT_EQ(listen(), DAT_CONN_QUAL_IN_USE);
        EXPECT_EQ(ConnectTo(side, Qualifier(true)), VIP_REJECT);
      });
}

// Handles of one face mean nothing to the other.
TEST(Cross, HandlesAreNotExchanged) {
  RunAlone([] {
    Side side;
    DatEnd dat;
    EXPECT_EQ(VipDisconnect(dat.ep), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipDestroyVi(dat.ep), VIP_INVALID_PARAMETER);
    EXPECT_EQ(DAT_GET_TYPE(dat_ep_disconnect(side.vi, DAT_CLOSE_ABRUPT_FLAG)),
              static_cast<DAT_UINT32>(DAT_INVALID_HANDLE));
    VIP_PROTECTION_HANDLE tag = nullptr;
    ASSERT_EQ(VipCreatePtag(side.nic.handle, &tag), VIP_SUCCESS);
    DAT_PZ_PARAM zone;
    EXPECT_EQ(DAT_GET_TYPE(dat_pz_query(tag, DAT_PZ_FIELD_ALL, &zone)),
              static_cast<DAT_UINT32>(DAT_INVALID_HANDLE));
    DAT_HANDLE_TYPE type;
    EXPECT_EQ(DAT_GET_TYPE(dat_get_handle_type(tag, &type)),
              static_cast<DAT_UINT32>(DAT_INVALID_HANDLE));
  });
}

}  // namespace
}  // namespace viaduct::tests
