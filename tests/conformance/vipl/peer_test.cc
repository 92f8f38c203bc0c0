// Peer-to-peer connections: VipConnectPeerRequest, -Done, -Wait; VIPL checklist C36-C40 and C77.
#include <poll.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kShort = 200, kLonger = 1000, kLong = 20000;  // ms

VIP_RETURN Ask(Side& side, const std::string& own, const std::string& other,
               VIP_ULONG timeout = kLong) {
  NetAddress local = side.nic.Address(own), remote = side.nic.Address(other);
  return VipConnectPeerRequest(side.vi, local.get(), remote.get(), timeout);
}
VIP_RETURN Await(Side& side) { return VipConnectPeerWait(side.vi, &side.peer); }

VIP_VI_ATTRIBUTES WithWrites() {
  VIP_VI_ATTRIBUTES attributes = Attributes();
  attributes.EnableRdmaWrite = VIP_TRUE;
  return attributes;
}

TEST(ConnectPeer, C036_CrossingRequestsConnect) {
  for (int round = 0; round < 20; ++round) {
    const auto body = [round](bool first, Peer& peer) {
      Side side(first ? WithWrites() : Attributes());
      peer.Tell("ready");
      peer.Await("ready");
      ASSERT_EQ(Ask(side, Name(first ? 1 : 2), Name(first ? 2 : 1)), VIP_SUCCESS) << round;
      ASSERT_EQ(Await(side), VIP_SUCCESS) << round;
      EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
      EXPECT_EQ(side.peer.ReliabilityLevel, Attributes().ReliabilityLevel);
      EXPECT_EQ(side.peer.MaxTransferSize, Attributes().MaxTransferSize);
      EXPECT_EQ(side.peer.EnableRdmaWrite,
                first ? Attributes().EnableRdmaWrite : WithWrites().EnableRdmaWrite);
      const VIP_VI_ATTRIBUTES told = std::exchange(side.peer, {});
      EXPECT_EQ(Await(side), VIP_SUCCESS) << "told again while it is true";
      EXPECT_EQ(side.peer.MaxTransferSize, told.MaxTransferSize);
      EXPECT_EQ(side.peer.EnableRdmaWrite, told.EnableRdmaWrite);
      Exchange(side, peer, first);
    };
    RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
  }
}

TEST(ConnectPeer, C036_WhoeverComesLater) {
  for (bool first_waits : {false, true}) {
    const auto body = [first_waits](bool first, Peer& peer) {
      Side side;
      if (first == first_waits) {
        peer.Await("pending");
        poll(nullptr, 0, 150);  // the other side has long since begun to poll less often
      }
      ASSERT_EQ(Ask(side, Name(first ? 1 : 2), Name(first ? 2 : 1)), VIP_SUCCESS);
      if (first != first_waits) peer.Tell("pending");
      ASSERT_EQ(Await(side), VIP_SUCCESS);
      Exchange(side, peer, first);
    };
    RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
  }
}

// Eight bytes that spell a TCP port are a name like any other here.
TEST(ConnectPeer, C036_DiscriminatorsThatSpellPorts) {
  const auto name = [](int n) {
    std::string bytes(8, '\0');
    bytes[6] = static_cast<char>(Port(n) >> 8);
    bytes[7] = static_cast<char>(Port(n));
    return bytes;
  };
  const auto body = [&](bool first, Peer& peer) {
    Side side;
    ASSERT_EQ(Ask(side, name(first ? 1 : 2), name(first ? 2 : 1)), VIP_SUCCESS);
    ASSERT_EQ(Await(side), VIP_SUCCESS);
    Exchange(side, peer, first);
  };
  RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
}

TEST(ConnectPeer, C036_TwoVisOfOneProcess) {
  RunAlone([] {
    Side a, b;
    ASSERT_EQ(Ask(a, Name(1), Name(2)), VIP_SUCCESS);
    ASSERT_EQ(Ask(b, Name(2), Name(1)), VIP_SUCCESS);
    EXPECT_EQ(Await(a), VIP_SUCCESS);
    EXPECT_EQ(Await(b), VIP_SUCCESS);
    b.Receive(0);
    a.SendText(16, "over");
    EXPECT_EQ(b.TextOf(b.NextReceive()), "over");
  });
}

TEST(ConnectPeer, C036_AgainAfterADisconnect) {
  const auto body = [](bool first, Peer& peer) {
    Side side;
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(Ask(side, Name(first ? 1 : 2), Name(first ? 2 : 1)), VIP_SUCCESS);
      ASSERT_EQ(Await(side), VIP_SUCCESS);
      peer.Tell("connected");
      peer.Await("connected");
      EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE);
      peer.Tell("idle");
      peer.Await("idle");
    }
  };
  RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
}

// Nobody asked for the outcome before the disconnect.
TEST(ConnectPeer, S_WhatVipDisconnectHasEndedIsNotToldAsSuccess) {
  const auto body = [](bool first, Peer& peer) {
    Side side;
    ASSERT_EQ(Ask(side, Name(first ? 1 : 2), Name(first ? 2 : 1)), VIP_SUCCESS);
    while (side.State() == VIP_STATE_CONNECT_PENDING) std::this_thread::yield();
    EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
    peer.Tell("connected");
    peer.Await("connected");
    ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE);
  };
  RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
}

// At whatever stage of the attempt the disconnect comes.
TEST(ConnectPeer, S_VipDisconnectEndsAnAttemptThatBegins) {
  RunAlone([] {
    Side side;
    std::atomic<bool> over{false};
    std::thread asking([&] {
      while (!over) Ask(side, Name(1), Name(2), kLong);
    });
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS) << i;
    over = true;
    asking.join();
    ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

TEST(ConnectPeer, C037_NotDoneThenTimeout) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    const int64_t begin = NowMilliseconds();
    ASSERT_EQ(Ask(side, Name(1), Name(2), kLonger), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE);
    VIP_RETURN result;
    while ((result = VipConnectPeerDone(side.vi, &side.peer)) == VIP_NOT_DONE) PassTime(1'000'000);
    EXPECT_EQ(result, VIP_TIMEOUT);
    EXPECT_GE(NowMilliseconds() - begin, int64_t{kLonger});
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE) << "told once";
    ASSERT_EQ(Ask(side, Name(1), Name(2), kShort), VIP_SUCCESS) << "the VI can be used again";
    EXPECT_EQ(Await(side), VIP_TIMEOUT);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(side.DrainFlushed(), 1) << "posted receives stay";
  });
}

TEST(ConnectPeer, C038_PendingInBetween) {
  RunAlone([] {
    Side side;
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE);
    EXPECT_EQ(Await(side), VIP_INVALID_STATE);
    ASSERT_EQ(Ask(side, Name(1), Name(2)), VIP_SUCCESS);
    EXPECT_EQ(side.State(), VIP_STATE_CONNECT_PENDING);
    EXPECT_EQ(Ask(side, Name(1), Name(2)), VIP_INVALID_STATE);
    EXPECT_EQ(side.Request(0, kShort), VIP_INVALID_STATE);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE) << "the first one goes on";
    EXPECT_EQ(VipDestroyVi(side.vi), VIP_INVALID_STATE);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE);
  });
}

TEST(ConnectPeer, C077_WhilePendingSendsAreFlushedAndReceivesWait) {
  RunAlone([] {
    Side side;
    ASSERT_EQ(Ask(side, Name(1), Name(2)), VIP_SUCCESS);
    side.Receive(0);
    ASSERT_EQ(side.PostSend(side.memory.Fill(1, 0, 16)), VIP_SUCCESS);
    VIP_DESCRIPTOR* done = side.NextSend();
    ASSERT_EQ(done, side.memory.descriptor(1));
    EXPECT_EQ(done->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
              static_cast<VIP_UINT32>(VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR));
    EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
    EXPECT_EQ(side.State(), VIP_STATE_CONNECT_PENDING);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(side.DrainFlushed(), 1);
  });
}

TEST(ConnectPeer, C038_DisconnectEndsAWait) {
  RunAlone([] {
    Side side;
    ASSERT_EQ(Ask(side, Name(1), Name(2), VIP_INFINITE), VIP_SUCCESS);
    VIP_RETURN result = VIP_SUCCESS;
    Sleeper waiter([&] { result = Await(side); });
    waiter.AwaitAsleep();
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    waiter.Join();
    EXPECT_EQ(result, VIP_INVALID_STATE);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

TEST(ConnectPeer, C037_WhileAThreadWaitsNobodyElseIsTold) {
  RunAlone([] {
    Side side;
    ASSERT_EQ(Ask(side, Name(1), Name(2), VIP_INFINITE), VIP_SUCCESS);
    VIP_VI_ATTRIBUTES peer;
    Sleeper waiter([&] { EXPECT_EQ(VipConnectPeerWait(side.vi, &peer), VIP_INVALID_STATE); });
    waiter.AwaitAsleep();
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE);
    EXPECT_EQ(Await(side), VIP_ERROR_RESOURCE);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    waiter.Join();
  });
}

// The outcome of the previous attempt, which another thread may still be about to report, does not
// affect the next attempt.
TEST(ConnectPeer, C038_ADisconnectEndsAWaitAndTheNextAttemptBegins) {
  RunAlone([] {
    Side side;
    for (int round = 0; round < 200; ++round) {
      ASSERT_EQ(Ask(side, Name(1), Name(2), VIP_INFINITE), VIP_SUCCESS) << round;
      VIP_RETURN result = VIP_SUCCESS;
      VIP_VI_ATTRIBUTES peer;
      Sleeper waiter([&] { result = VipConnectPeerWait(side.vi, &peer); });
      waiter.AwaitAsleep();
      EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      EXPECT_EQ(Ask(side, Name(1), Name(2), VIP_INFINITE), VIP_SUCCESS) << round;
      waiter.Join();
      EXPECT_EQ(result, VIP_INVALID_STATE);
      ASSERT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE) << round;
      EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      EXPECT_EQ(Await(side), VIP_INVALID_STATE);
    }
  });
}

// The state shows the end of an attempt before its outcome can be reported: that outcome is not the
// next attempt's either. The other thread keeps the executor busy through which the outcome goes.
TEST(ConnectPeer, C037_AnEndedAttemptAndTheNextOneBegins) {
  RunAlone([] {
    Side side;
    std::atomic<bool> over{false};
    std::thread busy([&] {
      VIP_DESCRIPTOR* done;
      while (!over && VipRecvDone(side.vi, &done) == VIP_DESCRIPTOR_ERROR) {  // it is empty
      }
    });
    for (int round = 0; round < 300; ++round) {
      ASSERT_EQ(Ask(side, Name(1), Name(2), 1), VIP_SUCCESS) << round;
      while (side.State() != VIP_STATE_IDLE) {
      }
      ASSERT_EQ(Ask(side, Name(1), Name(2), VIP_INFINITE), VIP_SUCCESS) << round;
      ASSERT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE) << round;
      EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    }
    over = true;
    busy.join();
  });
}

TEST(ConnectPeer, C037_OneOfTwoWaitersIsTold) {
  RunAlone([] {
    Side side;
    for (int round = 0; round < 300; ++round) {
      ASSERT_EQ(Ask(side, Name(1), Name(2), 1), VIP_SUCCESS) << round;
      while (side.State() != VIP_STATE_IDLE) std::this_thread::yield();
      std::atomic<int> here{0};
      VIP_RETURN results[2];
      const auto wait = [&](int n) {
        VIP_VI_ATTRIBUTES peer;
        for (++here; here != 2;) std::this_thread::yield();
        results[n] = VipConnectPeerWait(side.vi, &peer);
      };
      std::thread other([&] { wait(1); });
      wait(0);
      other.join();
      const VIP_RETURN rival = results[0] == VIP_TIMEOUT ? results[1] : results[0];
      EXPECT_TRUE(results[0] == VIP_TIMEOUT || results[1] == VIP_TIMEOUT) << round;
      EXPECT_TRUE(rival == VIP_INVALID_STATE || rival == VIP_ERROR_RESOURCE) << round;
      EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE) << "told once";
    }
  });
}

void ExpectMismatch(const VIP_VI_ATTRIBUTES& one, const VIP_VI_ATTRIBUTES& other, VIP_RETURN code) {
  const auto body = [&](bool first, Peer& peer) {
    Side side(first ? one : other);
    side.Receive(0);
    ASSERT_EQ(Ask(side, Name(first ? 1 : 2), Name(first ? 2 : 1)), VIP_SUCCESS);
    EXPECT_EQ(Await(side), code);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    peer.Tell("told");
    peer.Await("told");
    // The mismatch does not prevent another attempt.
    VIP_VI_ATTRIBUTES same = Attributes();
    ASSERT_EQ(VipSetViAttributes(side.vi, &same), VIP_SUCCESS);
    ASSERT_EQ(Ask(side, Name(first ? 3 : 4), Name(first ? 4 : 3)), VIP_SUCCESS);
    EXPECT_EQ(Await(side), VIP_SUCCESS);
    peer.Tell("done");
    peer.Await("done");
  };
  RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
}

TEST(ConnectPeer, C039_ReliabilityLevel) {
  ExpectMismatch(Attributes(VIP_SERVICE_RELIABLE_DELIVERY),
                 Attributes(VIP_SERVICE_RELIABLE_RECEPTION), VIP_INVALID_RELIABILITY_LEVEL);
}
TEST(ConnectPeer, C039_MaxTransferSize) {
  ExpectMismatch(Attributes(VIP_SERVICE_RELIABLE_DELIVERY, 4096),
                 Attributes(VIP_SERVICE_RELIABLE_DELIVERY, 8192), VIP_INVALID_MTU);
}
TEST(ConnectPeer, C039_Qos) {
  VIP_VI_ATTRIBUTES other = Attributes();
  other.QoS = reinterpret_cast<VIP_QOS>(uintptr_t{7});
  ExpectMismatch(Attributes(), other, VIP_INVALID_QOS);
}

TEST(ConnectPeer, C040_NeverToItself) {
  RunAlone([] {
    Side side, a, b;
    ASSERT_EQ(Ask(side, Name(1), Name(1), VIP_INFINITE), VIP_SUCCESS);
    // Two others find each other meanwhile.
    ASSERT_EQ(Ask(a, Name(2), Name(3)), VIP_SUCCESS);
    ASSERT_EQ(Ask(b, Name(3), Name(2)), VIP_SUCCESS);
    EXPECT_EQ(Await(a), VIP_SUCCESS);
    EXPECT_EQ(Await(b), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_NOT_DONE);
    EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
    ASSERT_EQ(Ask(side, Name(1), Name(1), kShort), VIP_SUCCESS);
    EXPECT_EQ(Await(side), VIP_TIMEOUT);
  });
}

TEST(ConnectPeer, C040_TwoProcessesWithOneAddress) {
  const auto body = [](bool first, Peer& peer) {
    Side side;
    ASSERT_EQ(Ask(side, Name(1), Name(1)), VIP_SUCCESS);
    ASSERT_EQ(Await(side), VIP_SUCCESS);
    Exchange(side, peer, first);
  };
  RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
}

TEST(ConnectPeer, C040_TwoVisOfOneProcessWithOneAddress) {
  RunAlone([] {
    Side a, b;
    ASSERT_EQ(Ask(a, Name(1), Name(1)), VIP_SUCCESS);
    ASSERT_EQ(Ask(b, Name(1), Name(1)), VIP_SUCCESS);
    EXPECT_EQ(Await(a), VIP_SUCCESS);
    EXPECT_EQ(Await(b), VIP_SUCCESS);
    a.Receive(0);
    b.SendText(16, "over");
    EXPECT_EQ(a.TextOf(a.NextReceive()), "over");
  });
}

// Both addresses count: a third party that asks for one of the two gets neither.
TEST(ConnectPeer, S_BothAddressesMatch) {
  RunAlone([] {
    Side stranger, a, b;
    ASSERT_EQ(Ask(stranger, Name(3), Name(2), VIP_INFINITE), VIP_SUCCESS);
    ASSERT_EQ(Ask(a, Name(1), Name(2)), VIP_SUCCESS);
    ASSERT_EQ(Ask(b, Name(2), Name(1)), VIP_SUCCESS);
    EXPECT_EQ(Await(a), VIP_SUCCESS);
    EXPECT_EQ(Await(b), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerDone(stranger.vi, &stranger.peer), VIP_NOT_DONE);
    EXPECT_EQ(VipDisconnect(stranger.vi), VIP_SUCCESS);
  });
}

// VipConnectWait does not take a peer request, and VipConnectRequest finds no peer.
TEST(ConnectPeer, S_ModelsDoNotMix) {
  RunAlone([] {
    Side a, b;
    VIP_RETURN waited = VIP_SUCCESS;
    std::thread server([&] {
      NetAddress local = b.nic.Address(Name(2));
      VIP_CONN_HANDLE connection;
      waited = VipConnectWait(b.nic.handle, local.get(), kLonger, b.requester.get(), &b.peer,
                              &connection);
    });
    ASSERT_EQ(Ask(a, Name(1), Name(2), kLonger), VIP_SUCCESS);
    EXPECT_EQ(b.Request(1, kLong), VIP_NO_MATCH);
    EXPECT_EQ(Await(a), VIP_TIMEOUT);
    server.join();
    EXPECT_EQ(waited, VIP_TIMEOUT);
  });
}

TEST(ConnectPeer, S_AnOutcomeThatNobodyAskedForIsGoneWithTheNextAttempt) {
  RunAlone([] {
    Side side;
    ASSERT_EQ(Ask(side, Name(1), Name(2), 1), VIP_SUCCESS);
    while (side.State() != VIP_STATE_IDLE) PassTime(1'000'000);
    EXPECT_NE(side.Request(0, 1), VIP_SUCCESS);
    EXPECT_EQ(VipConnectPeerDone(side.vi, &side.peer), VIP_INVALID_STATE);
  });
}

TEST(ConnectPeer, S_Parameters) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(1)), remote = side.nic.Address(Name(2));
    EXPECT_EQ(VipConnectPeerRequest(nullptr, local.get(), remote.get(), kShort),
              VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectPeerRequest(side.vi, nullptr, remote.get(), kShort), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectPeerRequest(side.vi, local.get(), nullptr, kShort), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectPeerRequest(side.vi, local.get(), remote.get(), 0), VIP_INVALID_PARAMETER);
    local.get()->HostAddress[0] ^= 1;
    EXPECT_EQ(VipConnectPeerRequest(side.vi, local.get(), remote.get(), kShort),
              VIP_INVALID_ADDRESS);
    EXPECT_EQ(VipConnectPeerDone(nullptr, &side.peer), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectPeerDone(side.vi, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectPeerWait(nullptr, &side.peer), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectPeerWait(side.vi, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

// A connection handle is used up by its accept: C30, for a VI that is connected peer to peer too.
TEST(ConnectPeer, C030_ConnectionHandleUsedTwice) {
  RunAlone([] {
    Side a, b, c, d;
    ASSERT_EQ(Ask(c, Name(1), Name(2)), VIP_SUCCESS);
    ASSERT_EQ(Ask(d, Name(2), Name(1)), VIP_SUCCESS);
    ASSERT_EQ(Await(c), VIP_SUCCESS);
    ASSERT_EQ(Await(d), VIP_SUCCESS);
    VIP_RETURN asked = VIP_TIMEOUT;
    std::thread client([&] { asked = a.Connect(5); });
    const VIP_CONN_HANDLE connection = b.TakeRequest(Name(5));
    EXPECT_EQ(VipConnectAccept(connection, d.vi), VIP_INVALID_STATE) << "connected to its peer";
    EXPECT_EQ(VipConnectPeerDone(d.vi, &d.peer), VIP_SUCCESS) << "and still is";
    EXPECT_EQ(VipConnectAccept(connection, b.vi), VIP_SUCCESS);
    client.join();
    EXPECT_EQ(asked, VIP_SUCCESS);
    Side e;
    EXPECT_EQ(VipConnectAccept(connection, e.vi), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipConnectReject(connection), VIP_INVALID_PARAMETER);
    EXPECT_EQ(e.State(), VIP_STATE_IDLE);
    EXPECT_EQ(c.State(), VIP_STATE_CONNECTED);
  });
}

}  // namespace
}  // namespace viaduct::tests
