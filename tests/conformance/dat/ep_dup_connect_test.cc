// dat_ep_dup_connect: uDAPL 1.2, the page of that name; DAT checklist 95-97.
#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

DAT_RETURN Duplicate(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout = kPatience,
                     const std::vector<uint8_t>& data = {}, DAT_QOS qos = DAT_QOS_BEST_EFFORT) {
  return dat_ep_dup_connect(ep, dup, timeout, static_cast<DAT_COUNT>(data.size()),
                            const_cast<uint8_t*>(data.data()), qos);
}

void SameRemoteEnd(DAT_CONN_QUAL qualifier) {
  RunPair(
      [=](Peer& peer) {
        Side side;
        side.Listen(qualifier);
        peer.Tell("listening");
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, side.NewEp()));
        Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.conn_qual, qualifier);
        EXPECT_EQ(PrivateDataOf(ParametersOf(request)), Pattern(12));
        Must(side.TryAccept(request.cr_handle, side.NewEp(), Pattern(3)));
        Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        peer.Await("done");
      },
      [=](Peer& peer) {
        Side side;
        DAT_EP_HANDLE first = side.NewEp(), second = side.NewEp();
        peer.Await("listening");
        side.Connect(first, qualifier, kPatience, Pattern(40));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, first);
        Must(Duplicate(second, first, kPatience, Pattern(12)));
        const auto event =
            NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, second);
        EXPECT_EQ(PrivateDataOf(event), Pattern(3));
        EXPECT_EQ(StateOf(second), DAT_EP_STATE_CONNECTED);
        EXPECT_EQ(ParametersOf(second).remote_port_qual, qualifier);
        EXPECT_EQ(StateOf(first), DAT_EP_STATE_CONNECTED);
        peer.Tell("done");
      });
}

TEST(EpDupConnect, C095_SameRemoteEndOwnPrivateData) { SameRemoteEnd(Port(0)); }
TEST(EpDupConnect, C095_SameLargeQualifier) { SameRemoteEnd(0x1234567800000000 + Port(0)); }

TEST(EpDupConnect, C095_DuplicateNotConnected) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp(), dup = side.NewEp();
    EXPECT_TRUE(Fails(Duplicate(ep, dup), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    EXPECT_TRUE(Fails(Duplicate(ep, ep), DAT_INVALID_STATE));
  });
}

// All cases that need a connected endpoint to duplicate but no second connection.
TEST(EpDupConnect, S_Parameters) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE dup = side.NewEp(), ep = side.NewEp();
        side.ConnectTo(peer, dup, Port(0));
        std::vector<uint8_t> data(static_cast<size_t>(side.provider.max_private_data_size) + 1);
        EXPECT_TRUE(Fails(Duplicate(ep, dup, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
        EXPECT_TRUE(
            Fails(Duplicate(ep, dup, kSecond, data), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
        EXPECT_TRUE(
            Fails(dat_ep_dup_connect(ep, dup, kSecond, -1, data.data(), DAT_QOS_BEST_EFFORT),
                  DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
        EXPECT_TRUE(Fails(dat_ep_dup_connect(ep, dup, kSecond, 1, nullptr, DAT_QOS_BEST_EFFORT),
                          DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
        EXPECT_TRUE(
            Fails(Duplicate(ep, dup, kSecond, {}, DAT_QOS_PREMIUM), DAT_MODEL_NOT_SUPPORTED));
        EXPECT_TRUE(Fails(Duplicate(dup, dup), DAT_INVALID_STATE));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
        // The service point is gone by now.
        side.PostReceive(ep, 1);
        Must(Duplicate(ep, dup));
        EXPECT_EQ(StateOf(dup), DAT_EP_STATE_CONNECTED);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        side.ExpectFlushedReceives(ep, 1, 1);
        peer.Tell("done");
      });
}

TEST(EpDupConnect, S_OwnTimeoutAndReject) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, side.NewEp()));
        NextRequest(side.cr_evd);  // never answered
        Must(Reject(NextRequest(side.cr_evd).cr_handle, 0, nullptr));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE dup = side.NewEp(), late = side.NewEp(), refused = side.NewEp();
        peer.Await("listening");
        side.Connect(dup, Port(0), DAT_TIMEOUT_INFINITE);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, dup);
        Must(Duplicate(late, dup, 2 * kSecond));
        EXPECT_EQ(StateOf(late), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_TIMED_OUT, late);
        EXPECT_EQ(StateOf(late), DAT_EP_STATE_DISCONNECTED);
        Must(Duplicate(refused, dup));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, refused);
        EXPECT_EQ(StateOf(refused), DAT_EP_STATE_DISCONNECTED);
        peer.Tell("done");
      });
}

TEST(EpDupConnect, C096_FollowsTheHandoff) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        DAT_EVD_HANDLE other_evd = side.NewEvd(DAT_EVD_CR_FLAG);
        DAT_PSP_HANDLE other;
        Must(dat_psp_create(side.ia, Port(1), other_evd, DAT_PSP_CONSUMER_FLAG, &other));
        peer.Tell("listening");
        Must(dat_cr_handoff(NextRequest(side.cr_evd).cr_handle, Port(1)));
        Must(side.TryAccept(NextRequest(other_evd).cr_handle, side.NewEp(), Pattern(7)));
        Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(other_evd);
        EXPECT_EQ(request.sp_handle.psp_handle, other);
        EXPECT_EQ(PrivateDataOf(ParametersOf(request)), Pattern(9));
        Must(side.TryAccept(request.cr_handle, side.NewEp()));
        Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        EXPECT_TRUE(IsEmpty(side.cr_evd));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE first = side.NewEp(), second = side.NewEp();
        peer.Await("listening");
        side.Connect(first, Port(0));
        const auto event =
            NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, first);
        EXPECT_EQ(PrivateDataOf(event), Pattern(7));
        Must(Duplicate(second, first, kPatience, Pattern(9)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, second);
        peer.Tell("done");
      });
}

// There are only the default flags, and a duplicate of a duplicate keeps them.
TEST(EpDupConnect, C097_DuplicateOfADuplicate) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        for (int i = 0; i < 3; ++i) {
          Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, side.NewEp()));
        }
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE before = side.NewEp();
        peer.Await("listening");
        side.Connect(before, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, before);
        for (int i = 0; i < 2; ++i) {
          DAT_EP_HANDLE ep = side.NewEp();
          Must(Duplicate(ep, before));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          before = ep;
        }
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
