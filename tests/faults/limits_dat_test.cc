// A DAT program at the end of its descriptors or with few addresses, and one that forks.
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/famine.h"
#include "tests/faults/forking.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

// One byte each way.
void Exchange(Side& side, Peer& peer, DAT_EP_HANDLE ep) {
  side.PostReceive(ep, 1);
  peer.Tell("posted");
  peer.Await("posted");
  Must(side.TrySend(ep, 2));
  EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
  EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
}

// A connection through an adapter of its own.
void ConnectAndExchange(Peer& peer, int n) {
  Side own;
  DAT_EP_HANDLE ep = own.NewEp();
  own.ConnectTo(peer, ep, Port(n));
  Exchange(own, peer, ep);
}

void AcceptAndExchangeAt(Peer& peer, int n) {
  Side own;
  DAT_EP_HANDLE ep = own.NewEp();
  own.AcceptFrom(peer, ep, Port(n));
  Exchange(own, peer, ep);
}

// The server of a client whose first attempt to connect fails.
void AcceptAndExchange(Peer& peer) { AcceptAndExchangeAt(peer, 0); }

TEST(Descriptors, NoneToOpenAnAdapter) {
  RunAlone([] {
    char adapter[] = "soft0";
    {
      const DescriptorFamine famine;
      DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
      DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
      EXPECT_TRUE(Fails(dat_ia_open(adapter, 8, &async, &ia), DAT_INSUFFICIENT_RESOURCES));
    }
    Side side;
    EXPECT_EQ(StateOf(side.NewEp()), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(Descriptors, NoneToListen) {
  RunAlone([] {
    Side side;
    const Holdings before = HoldingsNow();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    {
      const DescriptorFamine famine;
      EXPECT_TRUE(Fails(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
                        DAT_INSUFFICIENT_RESOURCES));
    }
    EXPECT_TRUE(HoldsAtMost(before));
    Must(dat_psp_free(side.Listen(Port(0))));
  });
}

// Requests wait in the kernel until there are descriptors again.
TEST(Descriptors, NoneToTakeARequest) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE old = side.NewEp(), ep = side.NewEp();
        side.AcceptFrom(peer, old, Port(1));
        side.Listen(Port(0));
        {
          const DescriptorFamine famine;
          peer.Tell("in need");
          Exchange(side, peer, old);
          peer.Await("asking");
          poll(nullptr, 0, 300);  // the request comes while there are none
        }
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Exchange(side, peer, ep);
        Exchange(side, peer, old);
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE old = side.NewEp(), ep = side.NewEp();
        side.ConnectTo(peer, old, Port(1));
        peer.Await("in need");
        Exchange(side, peer, old);
        side.Connect(ep, Port(0));
        peer.Tell("asking");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Exchange(side, peer, ep);
        Exchange(side, peer, old);
      });
}

// The attempt fails at once; then another succeeds.
TEST(Descriptors, NoneToConnect) {
  RunPair(AcceptAndExchange, [](Peer& peer) {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    peer.Await("listening");
    const Holdings before = HoldingsNow();
    {
      const DescriptorFamine famine;
      EXPECT_TRUE(Fails(side.TryConnect(ep, Port(0)), DAT_INSUFFICIENT_RESOURCES));
    }
    EXPECT_TRUE(HoldsAtMost(before));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
    peer.Await("accepted");
    Exchange(side, peer, ep);
  });
}

// The process that serves the other qualifier cannot be asked.
TEST(Descriptors, NoneToHandARequestOver) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        const DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        {
          const DescriptorFamine famine;
          EXPECT_TRUE(Fails(dat_cr_handoff(cr, Port(1)), DAT_INSUFFICIENT_RESOURCES));
        }
        Must(dat_cr_handoff(cr, Port(1)));
        peer.AwaitEnd();
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp(), taker = side.NewEp();
        side.Listen(Port(1));
        peer.Await("listening");
        side.Connect(ep, Port(0));
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, taker));
        for (int i = 0; i < 2; ++i) {
          Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        }
      });
}

// To the kernel, shared memory is a file of 42 MiB; that it does not fit shows only after the call.
TEST(Files, TooSmallForSharedMemory) {
  RunPair(AcceptAndExchange, [](Peer& peer) {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    peer.Await("listening");
    {
      const SmallFiles small;
      side.Connect(ep, Port(0));
      if (Wire() == "shm") {
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_UNREACHABLE, ep);
      } else {
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
      }
    }
    if (Wire() == "shm") {
      Must(dat_ep_reset(ep));
      side.Connect(ep, Port(0));
      NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
    }
    peer.Await("accepted");
    Exchange(side, peer, ep);
  });
}

void ExpectErrorsInChild(Side& side, DAT_EP_HANDLE ep) {
  DAT_EVENT event;
  DAT_COUNT more = 0;
  DAT_EP_STATE state;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  EXPECT_TRUE(Fails(dat_ep_get_status(ep, &state, nullptr, nullptr), DAT_INVALID_HANDLE));
  EXPECT_TRUE(Fails(side.TrySend(ep, 1), DAT_INVALID_HANDLE));
  EXPECT_TRUE(Fails(dat_evd_dequeue(side.receive_evd, &event), DAT_INVALID_HANDLE));
  EXPECT_TRUE(
      Fails(dat_evd_wait(side.receive_evd, kPatience, 1, &event, &more), DAT_INVALID_HANDLE));
  EXPECT_TRUE(Fails(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE));
  EXPECT_TRUE(Fails(dat_pz_create(side.ia, &pz), DAT_INVALID_HANDLE));
  EXPECT_TRUE(Fails(dat_ep_free(ep), DAT_INVALID_HANDLE));
  EXPECT_TRUE(Fails(dat_ia_close(side.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE));
}

// Nothing has happened to the connection.
void ExpectConnected(const Side& side, DAT_EP_HANDLE ep) {
  EXPECT_EQ(StateOf(ep), DAT_EP_STATE_CONNECTED);
  EXPECT_TRUE(IsEmpty(side.connect_evd));
}

// What `ulimit -v` leaves to a job of a batch system.
TEST(AddressSpace, HalfAGibibyteIsEnough) {
  const auto limit = [] {
    const rlimit half = {512 << 20, 512 << 20};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &half), 0);
  };
  RunPair(
      [&](Peer& peer) {
        limit();
        AcceptAndExchange(peer);
      },
      [&](Peer& peer) {
        limit();
        ConnectAndExchange(peer, 0);
      });
}

// The program has taken most of what it may have: what is left has no room for an eighth of it.
TEST(AddressSpace, LittleIsLeftOfIt) {
  RunAlone([] {
    constexpr rlim_t kAll = rlim_t{2} << 30;
    const rlimit all = {kAll, kAll};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &all), 0);
    constexpr size_t kTaken = size_t{1800} << 20;
    ASSERT_NE(mmap(nullptr, kTaken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
              MAP_FAILED);
    ASSERT_EQ(
        mmap(nullptr, kAll / 8, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
        MAP_FAILED);
    Side side;
    EXPECT_NE(side.NewEp(), DAT_HANDLE_NULL);
  });
}

TEST(Fork, DatChildGetsErrorsAndDisturbsNobody) {
  RunPair(
      [](Peer& peer) {
        AcceptingSide side(peer);
        ExchangeWithForking(
            peer, [&] { Exchange(side, peer, side.ep); }, [&] { ExpectConnected(side, side.ep); });
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        ExchangeAndFork(
            peer, [&] { Exchange(side, peer, side.ep); },
            [&] { ExpectErrorsInChild(side, side.ep); }, [&] { ExpectConnected(side, side.ep); });
      });
}

// So does the child's own child, while the child has an adapter itself.
TEST(Fork, DatChildOpensAnAdapterOfItsOwn) {
  RunPair(
      [](Peer& peer) {
        AcceptingSide side(peer);
        ExchangeWithForking(
            peer, [&] { Exchange(side, peer, side.ep); }, [&] { ExpectConnected(side, side.ep); },
            [&] {
              for (int n : {1, 2, 1}) AcceptAndExchangeAt(peer, n);
            });
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        ExchangeAndFork(
            peer, [&] { Exchange(side, peer, side.ep); },
            [&] {
              ConnectAndExchange(peer, 1);
              EXPECT_EQ(EndOf(StartChild([&] { ConnectAndExchange(peer, 2); })), 0);
              ConnectAndExchange(peer, 1);
            },
            [&] { ExpectConnected(side, side.ep); });
      });
}

// A server that has opened an adapter to query it, and then has a process for each client.
TEST(Fork, DatChildrenAreServers) {
  RunPair(
      [](Peer& peer) {
        { Side asked; }
        for (int n = 0; n < 3; ++n) {
          EXPECT_EQ(EndOf(StartChild([&] { AcceptAndExchangeAt(peer, n); })), 0);
        }
      },
      [](Peer& peer) {
        for (int n = 0; n < 3; ++n) ConnectAndExchange(peer, n);
      });
}

}  // namespace
}  // namespace viaduct::tests
