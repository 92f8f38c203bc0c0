// dat_cr_handoff to a service point of another process of the host; DAT checklist 96, 98. The
// hand-off inside a process is in cr_accept_test.cc.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

constexpr DAT_CONN_QUAL kLarge = 0x1234567800000000;

// `first` and `second` are the two servers' processes, each with the other as its peer; `first`
// has the client as a second peer.
void RunThree(const std::function<void(Peer& second, Peer& client)>& first,
              const std::function<void(Peer& first)>& second,
              const std::function<void(Peer& first)>& client) {
  RunPair(
      [&](Peer& to_client) {
        int sockets[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
        fflush(nullptr);
        const pid_t parent = getpid(), child = fork();
        if (child == 0) {
          close(sockets[0]);
          Peer to_first(sockets[1], parent);
          try {
            second(to_first);
          } catch (const std::exception& failure) {
            ADD_FAILURE() << failure.what();
          }
          fflush(nullptr);
          _exit(::testing::Test::HasFailure() ? 1 : 0);
        }
        close(sockets[1]);
        Peer to_second(sockets[0], child);
        first(to_second, to_client);
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "the second server failed, see above";
      },
      client);
}

void Exchange(Side& side, DAT_EP_HANDLE ep) {
  Must(side.TrySend(ep, 2));
  EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
  EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
}

void HandOffBetweenProcesses(DAT_CONN_QUAL from, DAT_CONN_QUAL to) {
  RunThree(
      [=](Peer& second, Peer& client) {
        Side side;
        side.Listen(from);
        second.Await("listening");
        client.Tell("listening");
        const DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        Must(dat_cr_handoff(cr, to));
        EXPECT_TRUE(Fails(dat_cr_handoff(cr, to), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR));
        EXPECT_TRUE(IsEmpty(side.connect_evd));
        client.Await("duplicated");
        EXPECT_TRUE(IsEmpty(side.cr_evd)) << "the duplicate goes where the connection ended";
        second.Tell("done");
      },
      [=](Peer& first) {
        Side side;
        const DAT_PSP_HANDLE psp = side.Listen(to);
        const DAT_EP_HANDLE ep = side.NewEp(), duplicate = side.NewEp();
        side.PostReceive(ep, 1);
        first.Tell("listening");
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.conn_qual, to);
        EXPECT_EQ(request.sp_handle.psp_handle, psp);
        const DAT_CR_PARAM param = ParametersOf(request);
        EXPECT_EQ(PrivateDataOf(param), Pattern(33));
        EXPECT_NE(param.remote_port_qual, 0u);
        Must(side.TryAccept(request.cr_handle, ep, Pattern(21)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Exchange(side, ep);
        const DAT_CR_ARRIVAL_EVENT_DATA again = NextRequest(side.cr_evd);
        EXPECT_EQ(PrivateDataOf(ParametersOf(again)), Pattern(5));
        Must(side.TryAccept(again.cr_handle, duplicate));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, duplicate);
        first.Await("done");
      },
      [=](Peer& first) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp(), duplicate = side.NewEp();
        side.PostReceive(ep, 1);
        first.Await("listening");
        side.Connect(ep, from, kPatience, Pattern(33));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(PrivateDataOf(event), Pattern(21));
        Exchange(side, ep);
        std::vector<uint8_t> data = Pattern(5);
        Must(dat_ep_dup_connect(duplicate, ep, kPatience, static_cast<DAT_COUNT>(data.size()),
                                data.data(), DAT_QOS_BEST_EFFORT));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, duplicate);
        first.Tell("duplicated");
      });
}

TEST(CrHandoff, C098_ToAnotherProcess) { HandOffBetweenProcesses(Port(0), Port(1)); }
TEST(CrHandoff, C098_ToAnotherProcessWithLargeQualifiers) {
  HandOffBetweenProcesses(kLarge + Port(0), kLarge + Port(1));
}
TEST(CrHandoff, C098_FromALargeQualifierToASmallOne) {
  HandOffBetweenProcesses(kLarge + Port(0), Port(1));
}

// The connection belongs to the two processes that it joins: the one that handed it off may end.
TEST(CrHandoff, C098_OutlivesWhoHandedItOff) {
  RunPair(
      [](Peer& client) {
        int sockets[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
        const pid_t parent = getpid(), first = fork();
        if (first == 0) {
          Peer second(sockets[1], parent);
          Side side;
          side.Listen(Port(0));
          second.Await("listening");
          second.Tell("listening");
          Must(dat_cr_handoff(NextRequest(side.cr_evd).cr_handle, Port(1)));
          fflush(nullptr);
          _exit(::testing::Test::HasFailure() ? 1 : 0);
        }
        close(sockets[1]);
        Peer to_first(sockets[0], first);
        Side side;
        side.Listen(Port(1));
        const DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 1);
        to_first.Tell("listening");
        to_first.Await("listening");
        client.Tell("listening");
        const DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        int status = -1;
        EXPECT_EQ(waitpid(first, &status, 0), first);
        EXPECT_EQ(status, 0);
        Must(side.TryAccept(cr, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Exchange(side, ep);
        client.Await("done");
      },
      [](Peer& server) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 1);
        server.Await("listening");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Exchange(side, ep);
        server.Tell("done");
      });
}

// Hands a request off to the requester's own process, which hands it back.
TEST(CrHandoff, C098_ThereAndBack) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        side.Listen(Port(2));
        peer.Await("listening");
        peer.Tell("listening");
        Must(dat_cr_handoff(NextRequest(side.cr_evd).cr_handle, Port(1)));
        const DAT_CR_ARRIVAL_EVENT_DATA request = NextRequest(side.cr_evd);
        EXPECT_EQ(request.conn_qual, Port(2));
        EXPECT_EQ(PrivateDataOf(ParametersOf(request)), Pattern(9));
        const DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(request.cr_handle, ep, Pattern(4)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.Listen(Port(1));
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Tell("listening");
        peer.Await("listening");
        side.Connect(ep, Port(0), kPatience, Pattern(9));
        Must(dat_cr_handoff(NextRequest(side.cr_evd).cr_handle, Port(2)));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(PrivateDataOf(event), Pattern(4));
        peer.Tell("done");
      });
}

// The other process is there, but serves another name; the request can still be accepted.
TEST(CrHandoff, C098_NobodyInTheOtherProcess) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Await("listening");
        peer.Tell("listening");
        const DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        for (DAT_CONN_QUAL nobodys : {DAT_CONN_QUAL{Port(2)}, kLarge + Port(1)}) {
          EXPECT_TRUE(Fails(dat_cr_handoff(cr, nobodys), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        }
        const DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(cr, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.Listen(Port(1));
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Tell("listening");
        peer.Await("listening");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_TRUE(IsEmpty(side.cr_evd));
        peer.Tell("done");
      });
}

// A process that does not answer within a second counts as none.
TEST(CrHandoff, C098_OtherProcessIsStopped) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Await("listening");
        const DAT_EP_HANDLE asking = side.NewEp(), ep = side.NewEp();
        side.Connect(asking, Port(0));
        const DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        {
          const StoppedPeer stopped(peer);
          EXPECT_TRUE(Fails(dat_cr_handoff(cr, Port(1)), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        }
        Must(side.TryAccept(cr, ep));
        Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        side.Listen(Port(1));
        peer.Tell("listening");
        peer.Await("done");
        EXPECT_TRUE(IsEmpty(side.cr_evd));
      });
}

}  // namespace
}  // namespace viaduct::tests
