// Two hosts, each a network namespace, and the cable between them: the events that both sides of a
// connection get when the cable is cut, with every setting at its default.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

constexpr char kClientAddress[] = "10.77.0.1";
constexpr char kServerAddress[] = "10.77.0.2";
// The connection is given up within 10 s; the rest is for a busy machine.
constexpr DAT_TIMEOUT kUntilNoticed = 20 * kSecond;

bool Shell(const std::string& commands) {
  return system(("PATH=$PATH:/usr/sbin:/sbin; set -e; " + commands).c_str()) == 0;
}

// Sets up this end's address, and a route by which `soft0` finds it.
bool BringUp(const char* interface, const char* address) {
  const std::string name = interface;
  return Shell("ip link set lo up; ip address add " + std::string(address) + "/24 dev " + name +
               "; ip link set " + name + " up; ip route add default dev " + name);
}

// Both sides call these before they use the library; the cable is there when both have returned.
void JoinAsServer(Peer& peer) {
  ASSERT_EQ(unshare(CLONE_NEWNET), 0);
  peer.Tell("apart");
  peer.Await("cable");
  ASSERT_TRUE(BringUp("cable1", kServerAddress));
  peer.Tell("up");
}

void JoinAsClient(Peer& peer) {
  peer.Await("apart");
  const std::string there = std::to_string(peer.pid());
  // The last test's cable may still exist: the kernel removes it with the other end's namespace.
  static_cast<void>(Shell("ip link del cable0 2>/dev/null"));
  EXPECT_TRUE(Shell("ip link add cable0 type veth peer name cable1 netns " + there)) << "veth";
  EXPECT_TRUE(BringUp("cable0", kClientAddress));
  peer.Tell("cable");
  peer.Await("up");
}

// The neighbour stays known, so that nobody reports the host as unreachable.
void CutSilently() {
  ASSERT_TRUE(Shell("ip neigh replace " + std::string(kServerAddress) +
                    " lladdr 02:00:00:00:00:02 nud permanent dev cable0"));
}

void CutOwnEnd(const char* interface) {
  ASSERT_TRUE(Shell("ip link set " + std::string(interface) + " down"));
}

DAT_RETURN Dial(DAT_EP_HANDLE ep, DAT_TIMEOUT timeout) {
  sockaddr_in address = Ipv4(kServerAddress);
  return dat_ep_connect(ep, Pointer(address), Port(0), timeout, 0, nullptr, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG);
}

class CutLink : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasOwnNetwork()) GTEST_SKIP() << "no network namespace of its own";
    if (!Shell("unshare --net ip link add cable2 type veth peer name cable3 2>/dev/null")) {
      GTEST_SKIP() << "no other namespace with a pair of virtual interfaces: the program unshare "
                      "or ip, the right to it, or the kernel's veth is missing";
    }
  }
};

// Neither side sends anything: only keep-alive can notice the cut.
TEST_F(CutLink, AnIdleConnectionIsNoticedByBoth) {
  RunPair(
      [](Peer& peer) {
        JoinAsServer(peer);
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep, kUntilNoticed);
      },
      [](Peer& peer) {
        JoinAsClient(peer);
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        Must(Dial(ep, kPatience));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("accepted");
        const uint64_t cut = NowMicroseconds();
        CutOwnEnd("cable0");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep, kUntilNoticed);
        EXPECT_LT(NowMicroseconds() - cut, 15u * kSecond) << "the default is 10 s";
        peer.AwaitEnd();
      },
      {.seconds = 60});
}

// Runs `client` against a server that it never reaches.
void RunClient(const std::function<void(Side& side, DAT_EP_HANDLE ep)>& client) {
  RunPair(
      [](Peer& peer) {
        JoinAsServer(peer);
        peer.AwaitEnd();
      },
      [&client](Peer& peer) {
        JoinAsClient(peer);
        Side side;
        client(side, side.NewEp());
      },
      {.seconds = 60});
}

// The host is known but silent: nothing is heard from it by the deadline.
TEST_F(CutLink, ConnectingIntoSilenceEndsWithTheDeadline) {
  RunClient([](Side& side, DAT_EP_HANDLE ep) {
    CutSilently();
    const uint64_t start = NowMicroseconds();
    Must(Dial(ep, kSecond));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_UNREACHABLE, ep);
    EXPECT_GE(NowMicroseconds() - start, 1u * kSecond);
  });
}

// The server has the request when the cable is cut: the client gets neither answer nor refusal.
TEST_F(CutLink, AServerThatIsCutOffBeforeItAnswersTimesOut) {
  RunPair(
      [](Peer& peer) {
        JoinAsServer(peer);
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        NextRequest(side.cr_evd);
        peer.Tell("asked");
        peer.AwaitEnd();
      },
      [](Peer& peer) {
        JoinAsClient(peer);
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        Must(Dial(ep, 60 * kSecond));
        peer.Await("asked");
        CutSilently();
        // Twice as long: the server may be the first to give up, and its reset still comes through.
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_TIMED_OUT, ep, 2 * kUntilNoticed);
      },
      {.seconds = 60});
}

// A host whose loopback interface nobody has brought up.
TEST_F(CutLink, AServerListensWithoutLoopback) {
  RunPair(
      [](Peer& peer) {
        JoinAsServer(peer);
        ASSERT_TRUE(Shell("ip link set lo down; ip address flush dev lo"));
        Side side;
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.AwaitEnd();
      },
      [](Peer& peer) {
        JoinAsClient(peer);
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        Must(Dial(ep, kPatience));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        peer.Await("accepted");
      },
      {.seconds = 60});
}

// Shared memory finds that nobody is there; TCP has no route at all.
TEST_F(CutLink, AHostWithoutLoopbackHasNobody) {
  RunAlone([] {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    ASSERT_EQ(setenv("VIADUCT_WIRE", "auto", 1), 0);
    Side side;
    const DAT_EP_HANDLE ep = side.NewEp();
    sockaddr_in here = Ipv4("127.0.0.1");
    Must(dat_ep_connect(ep, Pointer(here), Port(0), kPatience, 0, nullptr, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
  });
}

// Nobody uses the qualifier, and still it is not available.
TEST_F(CutLink, AServerWhoseAddressHasGone) {
  RunAlone([] {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    ASSERT_TRUE(Shell("ip link add cable0 type veth peer name cable1"));
    ASSERT_TRUE(BringUp("cable0", kClientAddress));
    Side side;
    ASSERT_TRUE(Shell("ip address flush dev cable0"));
    DAT_PSP_HANDLE psp;
    EXPECT_TRUE(Fails(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
                      DAT_CONN_QUAL_UNAVAILABLE));
    ASSERT_TRUE(BringUp("cable0", kClientAddress));
    side.Listen(Port(0));
  });
}

// There is no route at all, which is reported at once.
TEST_F(CutLink, ConnectingWithoutAWayOutIsUnreachable) {
  RunClient([](Side& side, DAT_EP_HANDLE ep) {
    CutOwnEnd("cable0");
    Must(Dial(ep, 60 * kSecond));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_UNREACHABLE, ep);
  });
}

}  // namespace
}  // namespace viaduct::tests
