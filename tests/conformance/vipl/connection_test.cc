// VipConnectWait, VipConnectAccept, VipConnectReject, VipDisconnect: VIPL checklist C23-C35 and
// C77.
#include <signal.h>
#include <stdlib.h>
#include <vipl.h>

#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;

TEST(VipConnectWait, C23_TimesOut) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address(Name(0));
    VIP_CONN_HANDLE connection;
    const int64_t begin = NowMilliseconds();
    EXPECT_EQ(::VipConnectWait(side.nic.handle, local.get(), 100, side.requester.get(), &side.peer,
                               &connection),
              VIP_TIMEOUT);
    EXPECT_GE(NowMilliseconds() - begin, 100);
    EXPECT_LT(NowMilliseconds() - begin, 5000);
    EXPECT_EQ(::VipConnectWait(side.nic.handle, local.get(), 0, side.requester.get(), &side.peer,
                               &connection),
              VIP_TIMEOUT);
  });
}

TEST(VipConnectWait, C24_FillsTheLengthsOfTheRequester) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        EXPECT_EQ(side.requester.get()->HostAddressLen, side.nic.attributes.NicAddressLen);
        EXPECT_EQ(side.requester.get()->DiscriminatorLen, 6);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();  // as "client"
        peer.Tell("done");
      });
}

TEST(VipConnectWait, TheLocalHostMustBeTheNic) {
  RunAlone([] {
    Side side;
    const VIP_UINT8 other[6] = {192, 0, 2, 1, 0, 0};
    NetAddress local(other, sizeof other, Name(0));
    VIP_CONN_HANDLE connection;
    EXPECT_EQ(::VipConnectWait(side.nic.handle, local.get(), 0, side.requester.get(), &side.peer,
                               &connection),
              VIP_INVALID_ADDRESS);
  });
}

// One program of the time leaves it unset.
TEST(VipConnectWait, TheLocalHostMayBeLeftUnset) {
  setenv("VIADUCT_LOCAL_HOST", "any", 1);
  RunPair(
      [](Peer& peer) {
        Side side;
        const VIP_UINT8 unset[6] = {0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
        NetAddress local(unset, sizeof unset, Name(0));
        VIP_CONN_HANDLE connection;
        ASSERT_EQ(::VipConnectWait(side.nic.handle, local.get(), kLong, side.requester.get(),
                                   &side.peer, &connection),
                  VIP_SUCCESS);
        EXPECT_EQ(side.requester.discriminator(), "client");
        EXPECT_EQ(::VipConnectAccept(connection, side.vi), VIP_SUCCESS);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        const VIP_UINT8 unset[6] = {};
        NetAddress local(unset, sizeof unset, "client"), remote = side.nic.Address(Name(0));
        setenv("VIADUCT_GRACE_MS", "20000", 1);  // the server may not be waiting yet
        EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer),
                  VIP_SUCCESS);
        peer.Tell("done");
      });
  unsetenv("VIADUCT_LOCAL_HOST");
}

TEST(VipConnectWait, EndsWhenItsNicIsClosed) {
  RunAlone([] {
    Side side;
    VIP_RETURN result = VIP_SUCCESS;
    Sleeper waiter([&] {
      NetAddress local = side.nic.Address(Name(0));
      VIP_CONN_HANDLE connection;
      result = ::VipConnectWait(side.nic.handle, local.get(), VIP_INFINITE, side.requester.get(),
                                &side.peer, &connection);
    });
    waiter.AwaitAsleep();
    EXPECT_EQ(VipCloseNic(side.nic.handle), VIP_SUCCESS);
    waiter.Join();
    EXPECT_EQ(result, VIP_INVALID_PARAMETER);
  });
}

// An accept with attributes that differ fails, and the requester does not notice; the next accept,
// with the right attributes, connects.
void MismatchThenMatch(const VIP_VI_ATTRIBUTES& client, const VIP_VI_ATTRIBUTES& wrong,
                       VIP_RETURN expected) {
  RunPair(
      [&](Peer& peer) {
        Side side(wrong);
        const VIP_CONN_HANDLE connection = side.TakeRequest(Name(0));
        EXPECT_EQ(VipConnectAccept(connection, side.vi), expected);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        VIP_VI_ATTRIBUTES right = client;
        EXPECT_EQ(VipSetViAttributes(side.vi, &right), VIP_SUCCESS);
        EXPECT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS);
        peer.Await("connected");
      },
      [&](Peer& peer) {
        Side side(client);
        side.Connect();
        peer.Tell("connected");
      });
}

TEST(VipConnectAccept, C25_AnotherReliabilityLevel) {
  MismatchThenMatch(Attributes(VIP_SERVICE_RELIABLE_DELIVERY),
                    Attributes(VIP_SERVICE_RELIABLE_RECEPTION), VIP_INVALID_RELIABILITY_LEVEL);
}

TEST(VipConnectAccept, C26_AnotherMaxTransferSize) {
  MismatchThenMatch(Attributes(VIP_SERVICE_RELIABLE_DELIVERY, 65536),
                    Attributes(VIP_SERVICE_RELIABLE_DELIVERY, 32768), VIP_INVALID_MTU);
}

TEST(VipConnectAccept, C27_AnotherQos) {
  VIP_VI_ATTRIBUTES other = Attributes();
  other.QoS = reinterpret_cast<VIP_QOS>(uintptr_t{1});
  MismatchThenMatch(Attributes(), other, VIP_INVALID_QOS);
}

TEST(VipConnectAccept, C28_TheViMustBeIdle) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        const VIP_CONN_HANDLE second = side.TakeRequest(Name(1));
        EXPECT_EQ(::VipConnectAccept(second, side.vi), VIP_INVALID_STATE);
        EXPECT_EQ(VipConnectReject(second), VIP_SUCCESS);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side first, second;
        first.Connect();
        VIP_RETURN result;
        while ((result = second.Request(1, kLong)) == VIP_NO_MATCH) {
        }
        EXPECT_EQ(result, VIP_REJECT);
        peer.Tell("done");
      });
}

TEST(VipConnectAccept, C28_NorPendingNorInError) {
  RunPair(
      [](Peer& peer) {
        Side pending, broken, good;
        NetAddress local = pending.nic.Address(Name(2)), remote = pending.nic.Address(Name(3));
        ASSERT_EQ(VipConnectPeerRequest(pending.vi, local.get(), remote.get(), VIP_INFINITE),
                  VIP_SUCCESS);
        broken.Accept();
        peer.Tell("accepted");
        while (broken.State() == VIP_STATE_CONNECTED) sched_yield();
        const VIP_CONN_HANDLE second = good.TakeRequest(Name(1));
        EXPECT_EQ(::VipConnectAccept(second, pending.vi), VIP_INVALID_STATE);
        EXPECT_EQ(pending.State(), VIP_STATE_CONNECT_PENDING);
        EXPECT_EQ(::VipConnectAccept(second, broken.vi), VIP_INVALID_STATE);
        EXPECT_EQ(broken.State(), VIP_STATE_ERROR);
        EXPECT_EQ(::VipConnectAccept(second, good.vi), VIP_SUCCESS);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side first, second;
        first.Connect();
        peer.Await("accepted");
        EXPECT_EQ(VipDisconnect(first.vi), VIP_SUCCESS);
        second.Connect(1);
        peer.Tell("done");
      });
}

TEST(VipConnectAccept, C29_TheRequesterHasGivenUp) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Receive(0);
        const VIP_CONN_HANDLE connection = side.TakeRequest(Name(0));
        peer.Await("gave up");
        const VIP_RETURN result = ::VipConnectAccept(connection, side.vi);
        EXPECT_TRUE(result == VIP_TIMEOUT || result == VIP_ERROR_RESOURCE) << result;
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        // "The caller may retry, or must reject explicitly."
        EXPECT_EQ(::VipConnectAccept(connection, side.vi), result);
        EXPECT_EQ(::VipConnectReject(connection), VIP_SUCCESS);
        EXPECT_EQ(::VipConnectReject(connection), VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectAccept(connection, side.vi), VIP_INVALID_PARAMETER);
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
      },
      [](Peer& peer) {
        Side side;
        VIP_RETURN result;
        // Long enough for the request to arrive.
        while ((result = side.Request(0, 1000 * Slowness())) == VIP_NO_MATCH) {
        }
        EXPECT_EQ(result, VIP_TIMEOUT);
        peer.Tell("gave up");
        peer.AwaitEnd();
      });
}

// A stopped requester can neither confirm nor give up.
TEST(VipConnectAccept, C29_TheRequesterIsStopped) {
  RunPair(
      [](Peer& peer) {
        setenv("VIADUCT_SILENCE_MS", "2000", 1);
        Side side;
        side.Receive(0);
        const VIP_CONN_HANDLE connection = side.TakeRequest(Name(0));
        StopProcess(peer.pid());
        EXPECT_EQ(::VipConnectAccept(connection, side.vi), VIP_TIMEOUT);
        EXPECT_EQ(::VipConnectReject(connection), VIP_SUCCESS);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
        ASSERT_EQ(kill(peer.pid(), SIGCONT), 0);
        side.Accept(1);
        EXPECT_EQ(side.TextOf(side.NextReceive()), "again");
      },
      [](Peer& peer) {
        Side side;
        // The request may see the accept first, and then the end of the connection.
        while (side.Request(0, kLong) == VIP_NO_MATCH) {
        }
        EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        ASSERT_EQ(side.Connect(1), VIP_SUCCESS);
        side.SendText(16, "again");
        peer.AwaitEnd();
      });
}

TEST(VipConnectAccept, C30_UsedAndBogusConnectionHandles) {
  RunPair(
      [](Peer& peer) {
        Side side, other;
        const VIP_CONN_HANDLE connection = side.TakeRequest(Name(0));
        EXPECT_EQ(::VipConnectAccept(connection, nullptr), VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectAccept(nullptr, side.vi), VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectAccept(side.vi, side.vi), VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectReject(&side), VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectAccept(connection, side.vi), VIP_SUCCESS);
        EXPECT_EQ(::VipConnectAccept(connection, other.vi), VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectReject(connection), VIP_INVALID_PARAMETER);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Tell("done");
      });
}

TEST(VipDisconnect, C31_LeavesTheViIdleAndEverythingFlushed) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        for (int n = 0; n < 5; ++n) side.Receive(n);
        side.Connect();
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        VIP_DESCRIPTOR* done = nullptr;
        for (int n = 0; n < 5; ++n) {
          EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
          EXPECT_EQ(done, side.memory.descriptor(n)) << "in posting order";
          ASSERT_NE(done, nullptr);
          EXPECT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK,
                    static_cast<VIP_UINT32>(VIP_STATUS_DESC_FLUSHED_ERROR));
        }
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(done, nullptr);
        peer.Tell("done");
      });
}

void ExpectMarkedAsFlushed(const Side& side, int descriptors) {
  for (int n = 0; n < descriptors; ++n) {
    EXPECT_EQ(side.memory.descriptor(n)->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK),
              VIP_UINT32{VIP_STATUS_DONE | VIP_STATUS_DESC_FLUSHED_ERROR})
        << n;
  }
}

TEST(VipDisconnect, C31_MarksEverythingBeforeItReturns) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        for (int n = 0; n < 5; ++n) side.Receive(n);
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        ExpectMarkedAsFlushed(side, 5);
        EXPECT_EQ(side.DrainFlushed(), 5);
        for (int n = 0; n < 5; ++n) side.Receive(n);
        side.Connect();
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        ExpectMarkedAsFlushed(side, 5);
        peer.Tell("done");
      });
}

TEST(VipDisconnect, C31_TheMemoryOfTheFlushedMayGoAtOnce) {
  RunAlone([] {
    Side side;
    ErrorLog errors(side.nic.handle);
    for (int n = 0; n < 5; ++n) side.Receive(n);
    EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
    side.memory.Deregister();
    // No error was reported before this one.
    Memory other(side.nic);
    char* const misaligned = reinterpret_cast<char*>(other.descriptor(0)) + 32;
    VipPostRecv(side.vi, reinterpret_cast<VIP_DESCRIPTOR*>(misaligned), other.handle());
    VIP_ERROR_DESCRIPTOR error;
    ASSERT_TRUE(errors.Next(&error));
    EXPECT_EQ(error.ErrorCode, VIP_ERROR_POST_DESC);
  });
}

// The peer is stopped, so that not all sends can leave; over shared memory its rings hold only a
// part of them. Sends that have left succeed; from the first flushed one on, all are flushed.
TEST(VipDisconnect, C31_FlushesSendsThatWait) {
  constexpr int kSends = 60;
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int n = 0; n < kSends; ++n) {
          side.PostReceive(side.memory.Fill(n, 0, 65536));
        }
        side.Accept();
        peer.Tell("connected");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Await("connected");
        StopProcess(peer.pid());
        for (int n = 0; n < kSends; ++n) side.PostSend(side.memory.Fill(n, 0, 65536));
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        EXPECT_EQ(kill(peer.pid(), SIGCONT), 0);
        int flushed = 0;
        VIP_DESCRIPTOR* done = nullptr;
        for (int n = 0; n < kSends; ++n) {
          const VIP_RETURN result = VipSendDone(side.vi, &done);
          ASSERT_EQ(done, side.memory.descriptor(n)) << "in posting order";
          const VIP_UINT32 error = done->CS.Status & VIP_STATUS_ERROR_MASK;
          if (error == VIP_UINT32{VIP_STATUS_DESC_FLUSHED_ERROR}) ++flushed;
          EXPECT_EQ(error != 0, flushed > 0) << n;
          EXPECT_EQ(result, flushed > 0 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS) << n;
        }
        EXPECT_EQ(VipSendDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(done, nullptr);
        if (Wire() == "shm") {
          EXPECT_GT(flushed, 0);
        }
        peer.Tell("done");
      });
}

// Callbacks come in order: if that of a new error comes next, no earlier one is outstanding.
void ExpectNoErrorBefore(Side& side, ErrorLog& errors) {
  char* const misaligned = reinterpret_cast<char*>(side.memory.descriptor(5)) + 32;
  side.PostReceive(reinterpret_cast<VIP_DESCRIPTOR*>(misaligned));
  VIP_ERROR_DESCRIPTOR error;
  ASSERT_TRUE(errors.Next(&error));
  EXPECT_EQ(error.ErrorCode, VIP_ERROR_POST_DESC);
}

TEST(VipDisconnect, C32_ThePeerIsInErrorAndHearsOfItOnce) {
  RunPair(
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        for (int n = 0; n < 3; ++n) side.Receive(n);
        side.Accept();
        peer.Tell("connected");
        VIP_ERROR_DESCRIPTOR error;
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
        EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_VI);
        EXPECT_EQ(error.NicHandle, side.nic.handle);
        EXPECT_EQ(error.ViHandle, side.vi);
        EXPECT_EQ(side.State(), VIP_STATE_ERROR);
        EXPECT_EQ(side.DrainFlushed(), 3);
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        ExpectNoErrorBefore(side, errors);
      },
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        side.Connect();
        peer.Await("connected");
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        peer.AwaitEnd();
        ExpectNoErrorBefore(side, errors);  // the side that disconnects is not notified
      });
}

// A program that polls Status in memory: once it sees a flushed descriptor, the VI is in Error.
TEST(VipDisconnect, C32_ErrorComesBeforeTheFlush) {
  constexpr int kRounds = 20;
  RunPair(
      [](Peer& peer) {
        for (int i = 0; i < kRounds; ++i) {
          Side side;
          side.Receive(0);
          side.Accept(i);
          peer.Tell("accepted");
          const volatile VIP_UINT32* status = &side.memory.descriptor(0)->CS.Status;
          while (__atomic_load_n(status, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
          ASSERT_EQ(side.State(), VIP_STATE_ERROR) << i;
          EXPECT_EQ(side.DrainFlushed(), 1);
        }
      },
      [](Peer& peer) {
        for (int i = 0; i < kRounds; ++i) {
          Side side;
          side.Connect(i);
          peer.Await("accepted");
          ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        }
      });
}

// A program that polls the state: as soon as it sees Error, Done finds every descriptor flushed.
TEST(VipDisconnect, C32_InErrorEverythingIsDequeuable) {
  constexpr int kRounds = 30;
  constexpr int kReceives = 3;
  RunPair(
      [](Peer& peer) {
        for (int i = 0; i < kRounds; ++i) {
          Side side;
          for (int n = 0; n < kReceives; ++n) side.Receive(n);
          side.Accept(i);
          peer.Tell("accepted");
          while (side.State() != VIP_STATE_ERROR) std::this_thread::yield();
          for (int n = 0; n < kReceives; ++n) {
            VIP_DESCRIPTOR* done = nullptr;
            ASSERT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR) << i;
            ASSERT_EQ(done, side.memory.descriptor(n));
            EXPECT_NE(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
          }
          EXPECT_EQ(side.DrainFlushed(), 0);
        }
      },
      [](Peer& peer) {
        for (int i = 0; i < kRounds; ++i) {
          Side side;
          side.Connect(i);
          peer.Await("accepted");
          ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        }
      });
}

TEST(VipDisconnect, C33_TwiceIsTwiceSuccess) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS) << "never connected";
        side.Connect();
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        peer.Tell("done");
      });
}

TEST(VipDisconnect, C34_AfterItTheViConnectsAgain) {
  RunPair(
      [](Peer& peer) {
        Side side;
        for (int round = 0; round < 5; ++round) {
          side.Receive(0);
          side.Accept();
          EXPECT_EQ(side.TextOf(side.NextReceive()), "round " + std::to_string(round));
          peer.Tell("got it");
          peer.Await("disconnected");
          EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
          EXPECT_EQ(side.DrainFlushed(), 0);
        }
      },
      [](Peer& peer) {
        Side side;
        for (int round = 0; round < 5; ++round) {
          side.Receive(8);
          side.Connect();
          side.SendText(0, "round " + std::to_string(round));
          peer.Await("got it");
          EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
          EXPECT_EQ(side.DrainFlushed(), 1);
          peer.Tell("disconnected");
        }
      });
}

TEST(VipDisconnect, C35_C77_InErrorWhatIsPostedIsFlushedAtOnce) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Tell("connected");
        while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        EXPECT_EQ(side.State(), VIP_STATE_ERROR);
        side.Receive(0);
        VIP_DESCRIPTOR* done = side.NextReceive();
        ASSERT_EQ(done, side.memory.descriptor(0));
        EXPECT_NE(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
        ASSERT_EQ(side.PostSend(side.memory.Fill(1, 0, 16)), VIP_SUCCESS);
        done = side.NextSend();
        ASSERT_EQ(done, side.memory.descriptor(1));
        EXPECT_NE(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR, 0u);
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Await("connected");
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        peer.AwaitEnd();
      });
}

TEST(VipDisconnect, AnIdleViLosesItsPostedReceives) {
  RunAlone([] {
    Side side;
    side.Receive(0);
    side.Receive(1);
    EXPECT_EQ(VipDestroyVi(side.vi), VIP_ERROR_RESOURCE);
    EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    EXPECT_EQ(side.DrainFlushed(), 2);
    EXPECT_EQ(VipDestroyVi(side.vi), VIP_SUCCESS);
  });
}

TEST(VipDisconnect, EndsARequestOfAnotherThread) {
  RunPair(
      [](Peer& peer) {
        Side side;
        EXPECT_NE(side.TakeRequest(Name(0)), nullptr);
        peer.Tell("waiting");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        VIP_RETURN result = VIP_NO_MATCH;
        std::thread client([&] {
          while (result == VIP_NO_MATCH) result = side.Request(0, VIP_INFINITE);
        });
        peer.Await("waiting");
        EXPECT_EQ(::VipDisconnect(side.vi), VIP_SUCCESS);
        client.join();
        EXPECT_EQ(result, VIP_INVALID_STATE);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("done");
      });
}

TEST(VipDisconnect, AKilledPeerIsAConnectionLost) {
  PairOptions options;
  options.server_is_killed = true;
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Tell("connected");
        peer.Await("never");
      },
      [](Peer& peer) {
        Side side;
        ErrorLog errors(side.nic.handle);
        side.Receive(0);
        side.Connect();
        peer.Await("connected");
        ASSERT_EQ(kill(peer.pid(), SIGKILL), 0);
        VIP_ERROR_DESCRIPTOR error;
        ASSERT_TRUE(errors.Next(&error));
        EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
        EXPECT_EQ(side.State(), VIP_STATE_ERROR);
        EXPECT_EQ(side.DrainFlushed(), 1);
      },
      options);
}

// [REC] several waits with one discriminator, here in two processes of a host.
TEST(VipConnectWait, WaitersOfTwoProcessesAreBothServed) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept(7);
        peer.Await("both");
      },
      [](Peer& peer) {
        Side waiter, one, two;
        std::thread server([&] { waiter.Accept(7); });
        EXPECT_EQ(one.Connect(7), VIP_SUCCESS);
        EXPECT_EQ(two.Connect(7), VIP_SUCCESS);
        server.join();
        peer.Tell("both");
      });
}

}  // namespace
}  // namespace viaduct::tests
