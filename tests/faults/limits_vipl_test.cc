// A VIPL program at the end of its descriptors, and one that forks.
#include <sys/types.h>
#include <vipl.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"
#include "tests/faults/famine.h"
#include "tests/faults/forking.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kShort = 2000, kLong = 20000;  // ms

TEST(Descriptors, NoneToOpenANic) {
  RunAlone([] {
    VIP_NIC_HANDLE nic = nullptr;
    {
      const DescriptorFamine famine;
      for (const char* name : {"nic0", "/dev/via_lo", "lo", "127.0.0.1"}) {
        EXPECT_EQ(VipOpenNic(name, &nic), VIP_ERROR_RESOURCE) << name;
      }
    }
    Side side;
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

// The contents of a file of hosts are not known then.
TEST(Descriptors, NoneToLookUpANameOrAddresses) {
  RunAlone([] {
    setenv("VIADUCT_VIP_HOSTS", "/etc/hosts", 1);
    const Nic nic;
    ASSERT_EQ(VipNSInit(nic.handle, nullptr), VIP_SUCCESS);
    NetAddress address;
    VIP_AUTODISCOVERY_LIST list = {};
    const DescriptorFamine famine;
    EXPECT_EQ(VipNSGetHostByName(nic.handle, const_cast<VIP_CHAR*>("localhost"), address.get(), 0),
              VIP_ERROR_RESOURCE);
    EXPECT_EQ(VipQuerySystemManagementInfo(nic.handle, VIP_SMI_AUTODISCOVERY, &list),
              VIP_ERROR_RESOURCE);
  });
}

TEST(Descriptors, NoneToWaitForARequest) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const Holdings before = HoldingsNow();
        {
          const DescriptorFamine famine;
          NetAddress local = side.nic.Address(Name(0));
          VIP_CONN_HANDLE connection = nullptr;
          EXPECT_EQ(VipConnectWait(side.nic.handle, local.get(), kShort, side.requester.get(),
                                   &side.peer, &connection),
                    VIP_ERROR_RESOURCE);
        }
        EXPECT_TRUE(HoldsAtMost(before));
        peer.Tell("now");
        side.Accept();
        Exchange(side, peer, false);
      },
      [](Peer& peer) {
        Side side;
        peer.Await("now");
        side.Connect();
        Exchange(side, peer, true);
      });
}

TEST(Descriptors, NoneToRequest) {
  RunPair(
      [](Peer& peer) {
        Side old, side;
        old.Accept(1);
        Exchange(old, peer, false);
        side.Accept(0);
        Exchange(side, peer, false);
        Exchange(old, peer, false);
      },
      [](Peer& peer) {
        Side old, side;
        old.Connect(1);
        Exchange(old, peer, true);
        const Holdings before = HoldingsNow();
        {
          const DescriptorFamine famine;
          EXPECT_EQ(side.Request(0, kLong), VIP_ERROR_RESOURCE);
          EXPECT_EQ(side.State(), VIP_STATE_IDLE);
          EXPECT_EQ(old.State(), VIP_STATE_CONNECTED);
        }
        EXPECT_TRUE(HoldsAtMost(before));
        side.Connect(0);
        Exchange(side, peer, true);
        Exchange(old, peer, true);
      });
}

// To the kernel, shared memory is a file of 42 MiB.
TEST(Files, TooSmallForSharedMemory) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        Exchange(side, peer, false);
      },
      [](Peer& peer) {
        Side side;
        {
          const SmallFiles small;
          if (Wire() == "shm") {
            EXPECT_EQ(side.Request(0, kLong), VIP_ERROR_RESOURCE);
            EXPECT_EQ(side.State(), VIP_STATE_IDLE);
          } else {
            side.Connect();
          }
        }
        if (Wire() == "shm") side.Connect();
        Exchange(side, peer, true);
      });
}

// The child may call what it likes: its parent's handles mean nothing there.
void ExpectErrorsInChild(Side& side) {
  VIP_VI_STATE state;
  VIP_VI_ATTRIBUTES attributes = {};
  VIP_BOOLEAN sends, receives;
  VIP_DESCRIPTOR* done = nullptr;
  VIP_VI_HANDLE vi = nullptr;
  EXPECT_EQ(VipQueryVi(side.vi, &state, &attributes, &sends, &receives), VIP_INVALID_PARAMETER);
  EXPECT_EQ(side.PostSend(side.memory.Fill(20, 0, 8)), VIP_INVALID_PARAMETER);
  EXPECT_EQ(side.PostReceive(side.memory.Fill(21, 0, 8)), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSendDone(side.vi, &done), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRecvWait(side.vi, kLong, &done), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDisconnect(side.vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, nullptr, &vi),
            VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyVi(side.vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_INVALID_PARAMETER);
}

// Nothing has happened to the connection.
void ExpectConnected(Side& side, ErrorLog& errors) {
  EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
  EXPECT_TRUE(errors.empty());
}

TEST(Fork, ViplChildGetsErrorsAndDisturbsNobody) {
  RunPair(
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        side.Accept();
        ExchangeWithForking(
            peer, [&] { Exchange(side, peer, false); }, [&] { ExpectConnected(side, errors); });
      },
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        side.Connect();
        ExchangeAndFork(
            peer, [&] { Exchange(side, peer, true); }, [&] { ExpectErrorsInChild(side); },
            [&] { ExpectConnected(side, errors); });
      });
}

// A NIC of its own, and a connection through it.
void ConnectAndExchange(Peer& peer, int n) {
  Side own;
  own.Connect(n);
  Exchange(own, peer, true);
}

void AcceptAndExchange(Peer& peer, int n) {
  Side own;
  own.Accept(n);
  Exchange(own, peer, false);
}

// So does the child's own child, while the child has a NIC itself.
TEST(Fork, ViplChildOpensANicOfItsOwn) {
  RunPair(
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        side.Accept(0);
        ExchangeWithForking(
            peer, [&] { Exchange(side, peer, false); }, [&] { ExpectConnected(side, errors); },
            [&] {
              for (int n : {1, 2, 1}) AcceptAndExchange(peer, n);
            });
      },
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        side.Connect(0);
        ExchangeAndFork(
            peer, [&] { Exchange(side, peer, true); },
            [&] {
              ConnectAndExchange(peer, 1);
              EXPECT_EQ(EndOf(StartChild([&] { ConnectAndExchange(peer, 2); })), 0);
              ConnectAndExchange(peer, 1);
            },
            [&] { ExpectConnected(side, errors); });
      });
}

TEST(Fork, ViplChildConnectsWithItsParent) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    const pid_t child = StartChild([] {
      Side own;
      own.Connect(0);
      own.SendText(1, "from the child");
    });
    side.Accept(0);
    EXPECT_EQ(side.TextOf(side.NextReceive()), "from the child");
    EXPECT_EQ(EndOf(child), 0);
  });
}

// Whatever the other thread is in the middle of, nobody waits for it in the child.
TEST(Fork, ViplChildrenAreBornWhileAThreadOpensAndAsks) {
  RunAlone([] {
    { Side first; }
    std::atomic<bool> stop{false};
    std::thread asking([&] {
      while (!stop) {
        Side side;
        EXPECT_NE(side.Request(0, 1), VIP_SUCCESS);
      }
    });
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(EndOf(StartChild([] {
                  Side own;
                  EXPECT_NE(own.Request(0, 1), VIP_SUCCESS);
                })),
                0);
    }
    stop = true;
    asking.join();
  });
}

// Each part of the engine starts with the first adapter; some of them take milliseconds for it.
TEST(Fork, ViplChildrenAreBornWhileAThreadOpensTheFirst) {
  for (int i = 0; i < 20; ++i) {
    RunAlone([] {
      std::atomic<bool> begun{false};
      std::thread opening([&begun] {
        begun = true;
        Side side;
      });
      while (!begun) {
      }
      std::vector<pid_t> children;
      for (int child = 0; child < 8; ++child) children.push_back(StartChild([] { Side own; }));
      for (const pid_t child : children) EXPECT_EQ(EndOf(child), 0);
      opening.join();
    });
  }
}

// A server that has opened a NIC to query it, and then has a process for each client.
TEST(Fork, ViplChildrenAreServers) {
  RunPair(
      [](Peer& peer) {
        { Side asked; }
        for (int n = 0; n < 3; ++n) {
          EXPECT_EQ(EndOf(StartChild([&] { AcceptAndExchange(peer, n); })), 0);
        }
      },
      [](Peer& peer) {
        for (int n = 0; n < 3; ++n) ConnectAndExchange(peer, n);
      });
}

}  // namespace
}  // namespace viaduct::tests
