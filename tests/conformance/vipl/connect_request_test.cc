// [MAN] VipConnectRequest: VIPL checklist C1 to C22, one test for each statement.
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vipl.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;

TEST(VipConnectRequest, C01_HasItsSignature) {
  VIP_RETURN(*function)
  (VIP_VI_HANDLE, VIP_NET_ADDRESS*, VIP_NET_ADDRESS*, VIP_ULONG, VIP_VI_ATTRIBUTES*) =
      &::VipConnectRequest;
  EXPECT_NE(function, nullptr);
}

TEST(VipConnectRequest, C02_ConnectsAnIdleViToOneThatIsAccepted) {
  const auto body = [](bool server, Peer& peer) {
    Side side;
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
    if (server) {
      side.Accept();
    } else {
      side.Connect();
    }
    EXPECT_EQ(side.State(), VIP_STATE_CONNECTED);
    peer.Tell("looked");
    peer.Await("looked");
  };
  RunPair([&](Peer& peer) { body(true, peer); }, [&](Peer& peer) { body(false, peer); });
}

TEST(VipConnectRequest, C03_MatchesByTheRemoteAddressAlone) {
  RunPair(
      [](Peer& peer) {
        for (const char* name : {"one", "two"}) {
          Side side;
          side.Accept();
          EXPECT_EQ(side.requester.discriminator(), name);
          peer.Await("done");
        }
      },
      [](Peer& peer) {
        for (const char* name : {"one", "two"}) {
          Side side;
          NetAddress local = side.nic.Address(name);
          NetAddress remote = side.nic.Address(Name(0));
          VIP_RETURN result;
          do {
            result = ::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer);
          } while (result == VIP_NO_MATCH);
          EXPECT_EQ(result, VIP_SUCCESS);
          peer.Tell("done");
        }
      });
}

TEST(VipConnectRequest, C04_ThePeerSawTheLocalAddress) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        NetAddress client = peer.Receive<NetAddress>();
        EXPECT_EQ(side.requester.host(), client.host());
        EXPECT_EQ(side.requester.discriminator(), client.discriminator());
      },
      [](Peer& peer) {
        Side side;
        side.Connect();
        peer.Send(side.nic.Address("client"));
        peer.AwaitEnd();
      });
}

// Adds or removes a second address of the loopback interface, in a network of the test's own.
bool SetSecondAddress(bool add) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo:1");
  auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  bool done = add && ioctl(fd, SIOCSIFADDR, &request) == 0;
  if (!add) {
    request.ifr_flags = 0;
    done = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  }
  close(fd);
  return done;
}

TEST(VipConnectRequest, C04_ThePeerSawTheHostOfTheRequester) {
  if (!HasOwnNetwork()) GTEST_SKIP() << "needs a second address";
  ASSERT_TRUE(SetSecondAddress(true));
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        EXPECT_EQ(side.requester.host(), std::string("\x7f\0\0\2\0\0", 6));
        EXPECT_NE(side.requester.host(), side.nic.host());
        peer.Await("done");
      },
      [](Peer& peer) {
        Nic nic("127.0.0.2"), servers;
        VIP_VI_ATTRIBUTES attributes = Attributes();
        VIP_VI_HANDLE vi;
        ASSERT_EQ(VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
        NetAddress local = nic.Address("client"), remote = servers.Address(Name(0));
        setenv("VIADUCT_GRACE_MS", "20000", 1);  // the server may not be waiting yet
        EXPECT_EQ(::VipConnectRequest(vi, local.get(), remote.get(), kLong, &attributes),
                  VIP_SUCCESS);
        peer.Tell("done");
      });
  EXPECT_TRUE(SetSecondAddress(false));
}

TEST(VipConnectRequest, C05_ReportsTheRemoteAttributes) {
  const auto kQos = reinterpret_cast<VIP_QOS>(uintptr_t{0xfedcba98});
  RunPair(
      [=](Peer& peer) {
        VIP_VI_ATTRIBUTES attributes = Attributes(VIP_SERVICE_RELIABLE_RECEPTION, 40000);
        attributes.EnableRdmaWrite = VIP_TRUE;
        attributes.EnableRdmaRead = VIP_TRUE;
        attributes.QoS = kQos;
        Side side(attributes);
        side.Accept();
        EXPECT_EQ(side.peer.EnableRdmaWrite, VIP_FALSE) << "what the wait saw of the client";
        EXPECT_EQ(side.peer.QoS, kQos);
        peer.Await("done");
      },
      [=](Peer& peer) {
        VIP_VI_ATTRIBUTES attributes = Attributes(VIP_SERVICE_RELIABLE_RECEPTION, 40000);
        attributes.QoS = kQos;
        Side side(attributes);
        side.Connect();
        EXPECT_EQ(side.peer.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
        EXPECT_EQ(side.peer.MaxTransferSize, 40000u);
        EXPECT_EQ(side.peer.QoS, kQos);
        EXPECT_EQ(side.peer.EnableRdmaWrite, VIP_TRUE);
        EXPECT_EQ(side.peer.EnableRdmaRead, VIP_TRUE);
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C06_RdmaThatTheRemoteViForbidsIsFalse) {
  RunPair(
      [](Peer& peer) {
        for (const bool reads : {false, true}) {
          VIP_VI_ATTRIBUTES attributes = Attributes();
          attributes.EnableRdmaRead = reads ? VIP_TRUE : VIP_FALSE;
          Side side(attributes);
          side.Accept();
          peer.Await("done");
        }
      },
      [](Peer& peer) {
        for (const bool reads : {false, true}) {
          VIP_VI_ATTRIBUTES attributes = Attributes();
          attributes.EnableRdmaWrite = VIP_TRUE;
          Side side(attributes);
          side.Connect();
          EXPECT_EQ(side.peer.EnableRdmaWrite, VIP_FALSE);
          EXPECT_EQ(side.peer.EnableRdmaRead, reads ? VIP_TRUE : VIP_FALSE);
          peer.Tell("done");
        }
      });
}

TEST(VipConnectRequest, C07_RejectIsReject) {
  RunPair(
      [](Peer& peer) {
        Side side;
        EXPECT_EQ(VipConnectReject(side.TakeRequest(Name(0))), VIP_SUCCESS);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        VIP_RETURN result;
        do {
          result = side.Request(0, kLong);
        } while (result == VIP_NO_MATCH);
        EXPECT_EQ(result, VIP_REJECT);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("done");
      });
}

// C8 and C10: a server takes the request and then hangs.
TEST(VipConnectRequest, C08_C10_NoAnswerIsATimeOutNotBeforeItsTime) {
  RunPair(
      [](Peer& peer) {
        Side side;
        peer.Tell("begin");
        EXPECT_NE(side.TakeRequest(Name(0)), nullptr);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        peer.Await("begin");
        int64_t begin;
        VIP_RETURN result;
        do {
          begin = NowMilliseconds();
          result = side.Request(0, 1000 * Slowness());
        } while (result == VIP_NO_MATCH);
        EXPECT_EQ(result, VIP_TIMEOUT);
        EXPECT_GE(NowMilliseconds() - begin, 1000 * Slowness());
        EXPECT_LT(NowMilliseconds() - begin, 1000 * Slowness() + 5000);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C09_TimeOutZeroIsInvalidAtOnce) {
  RunAlone([] {
    Side side;
    EXPECT_EQ(side.Request(0, 0), VIP_INVALID_PARAMETER);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

TEST(VipConnectRequest, C09_TimeOutZeroReachesNobody) {
  RunPair(
      [](Peer& peer) {
        Side side;
        peer.Send(gettid());
        side.Accept();
        EXPECT_EQ(side.requester.discriminator(), "client") << "the one behind it";
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        AwaitAsleep(peer.pid(), peer.Receive<pid_t>());
        NetAddress local = side.nic.Address("nobody"), remote = side.nic.Address(Name(0));
        EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), remote.get(), 0, &side.peer),
                  VIP_INVALID_PARAMETER);
        side.Connect();
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C11_AStoppedServerIsATimeOut) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Sleeper waiter([&] {
          NetAddress local = side.nic.Address(Name(0));
          VIP_CONN_HANDLE connection;
          VipConnectWait(side.nic.handle, local.get(), kLong, side.requester.get(), &side.peer,
                         &connection);
        });
        waiter.AwaitAsleep();
        peer.Tell("begin");
        peer.Await("done");
        VipCloseNic(side.nic.handle);
        waiter.Join();
      },
      [](Peer& peer) {
        Side side;
        peer.Await("begin");
        StopProcess(peer.pid());
        const int64_t begin = NowMilliseconds();
        const VIP_RETURN result = side.Request(0, 400);
        kill(peer.pid(), SIGCONT);
        EXPECT_EQ(result, VIP_TIMEOUT);
        EXPECT_GE(NowMilliseconds() - begin, 400);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C12_NobodyWaitsForTheName) {
  RunPair(
      [](Peer& peer) {
        Side side;
        peer.Tell("open");
        peer.Await("done");
      },
      [](Peer& peer) {
        peer.Await("open");
        Side side;
        EXPECT_EQ(side.Request(1, kLong), VIP_NO_MATCH);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("done");
      });
}

// Names that differ in length or in one byte; with so few ports a waiter for another name answers.
TEST(VipConnectRequest, C12_SomebodyWaitsForAnotherName) {
  setenv("VIADUCT_PORT_COUNT", "16", 1);
  RunPair(
      [](Peer& peer) {
        Side side;
        peer.Send(gettid());
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        AwaitAsleep(peer.pid(), peer.Receive<pid_t>());
        const std::string name = Name(0);
        std::string other = name;
        other.back() ^= 1;
        for (const std::string& wrong :
             {other, name + '\0', name + name, name.substr(0, name.size() - 1), std::string()}) {
          NetAddress local = side.nic.Address(name), remote = side.nic.Address(wrong);
          EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer),
                    VIP_NO_MATCH)
              << wrong;
        }
        EXPECT_EQ(side.Request(0, kLong), VIP_SUCCESS);
        peer.Tell("done");
      });
  unsetenv("VIADUCT_PORT_COUNT");
}

TEST(VipConnectRequest, C13_NoProcessThereIsNoMatchToo) {
  RunAlone([] {
    Side side;
    EXPECT_EQ(side.Request(1, kLong), VIP_NO_MATCH);
  });
}

TEST(VipConnectRequest, C13_AProcessThatDoesNotWaitIsNoMatch) {
  RunPair(
      [](Peer& peer) {
        Nic nic;
        peer.Tell("open");
        peer.Await("asked");
        ASSERT_EQ(VipCloseNic(nic.handle), VIP_SUCCESS);
        peer.Tell("closed");
        peer.Await("asked");
      },
      [](Peer& peer) {
        Side side;
        for (const char* step : {"open", "closed"}) {
          peer.Await(step);
          EXPECT_EQ(side.Request(1, kLong), VIP_NO_MATCH) << step;
          peer.Tell("asked");
        }
      });
}

TEST(VipConnectRequest, C14_C15_APartitionSendsReliableVisToErrorAndFlushes) {
  if (!HasOwnNetwork()) GTEST_SKIP() << "needs a network where an address is unreachable";
  if (Wire() == "shm") GTEST_SKIP() << "the wire stays on its host";
  for (VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION, VIP_SERVICE_UNRELIABLE}) {
    RunAlone([level] {
      Side side(Attributes(level));
      side.Receive(0);
      side.Receive(1);
      const VIP_UINT8 nowhere[6] = {192, 0, 2, 1, 0, 0};
      NetAddress local = side.nic.Address("client");
      NetAddress remote(nowhere, sizeof nowhere, Name(0));
      // A thread that sees Error finds the flushed descriptors, even before the request returns.
      int taken = 0;
      std::thread watcher([&] {
        if (level == VIP_SERVICE_UNRELIABLE) return;
        while (side.State() != VIP_STATE_ERROR) std::this_thread::yield();
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_DESCRIPTOR_ERROR);
        EXPECT_EQ(done, side.memory.descriptor(0));
        ++taken;
      });
      EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer),
                VIP_NOT_REACHABLE);
      watcher.join();
      if (level == VIP_SERVICE_UNRELIABLE) {
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
      } else {
        EXPECT_EQ(side.State(), VIP_STATE_ERROR);
        EXPECT_EQ(side.DrainFlushed() + taken, 2);
      }
    });
  }
}

TEST(VipConnectRequest, C16_TheLocalHostMustBeTheNic) {
  RunAlone([] {
    Side side;
    const VIP_UINT8 other[6] = {192, 0, 2, 1, 0, 0};
    NetAddress local(other, sizeof other, "client");
    NetAddress remote = side.nic.Address(Name(0));
    EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer),
              VIP_INVALID_ADDRESS);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

TEST(VipConnectRequest, C16_AMalformedHostIsReadNoFurther) {
  RunAlone([] {
    Side side;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    constexpr size_t kForbidden = 128 * 1024;  // more than a length field can express
    void* const pages = mmap(nullptr, page + kForbidden, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    char* const end = static_cast<char*>(pages) + page;
    ASSERT_EQ(mprotect(end, kForbidden, PROT_NONE), 0);
    NetAddress local = side.nic.Address("client"), remote = side.nic.Address(Name(0));
    const size_t size = 4 + 6 + 6;
    char* const malformed = end - size;
    std::memcpy(malformed, static_cast<void*>(local.get()), size);
    auto* const address = reinterpret_cast<VIP_NET_ADDRESS*>(malformed);
    address->HostAddressLen = 60000;
    EXPECT_EQ(::VipConnectRequest(side.vi, address, remote.get(), kLong, &side.peer),
              VIP_INVALID_ADDRESS);
    EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), address, kLong, &side.peer),
              VIP_INVALID_PARAMETER);
    EXPECT_EQ(side.State(), VIP_STATE_IDLE);
  });
}

TEST(VipConnectRequest, C17_TheDiscriminatorArrivesByteForByte) {
  const std::string names[] = {std::string(), std::string("\0\0\0", 3), std::string("\xff\0x\0", 4),
                               std::string("0123456789abcde\0", 16)};
  RunPair(
      [&](Peer& peer) {
        for (const std::string& name : names) {
          Side side;
          side.Accept();
          EXPECT_EQ(side.requester.discriminator(), name);
          peer.Await("done");
        }
      },
      [&](Peer& peer) {
        for (const std::string& name : names) {
          Side side;
          NetAddress local = side.nic.Address(name);
          NetAddress remote = side.nic.Address(Name(0));
          VIP_RETURN result;
          do {
            result = ::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer);
          } while (result == VIP_NO_MATCH);
          EXPECT_EQ(result, VIP_SUCCESS);
          peer.Tell("done");
        }
      });
}

TEST(VipConnectRequest, C18_InfiniteWaitsForTheAnswer) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const VIP_CONN_HANDLE connection = side.TakeRequest(Name(0));
        peer.Tell("waiting");
        for (int i = 0; i < 200; ++i) {
          peer.Await("still");
          peer.Tell("waiting");
        }
        EXPECT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS);
        peer.Await("done");
      },
      [](Peer& peer) {
        // A grace period shorter than the time that the 200 exchanges of messages below take.
        setenv("VIADUCT_GRACE_MS", "0", 1);
        Side side;
        VIP_RETURN result = VIP_NO_MATCH;
        Sleeper client([&] {
          while (result == VIP_NO_MATCH) result = side.Request(0, VIP_INFINITE);
        });
        peer.Await("waiting");
        client.AwaitAsleep();
        for (int i = 0; i < 200; ++i) {
          ASSERT_EQ(side.State(), VIP_STATE_CONNECT_PENDING) << i;
          peer.Tell("still");
          peer.Await("waiting");
        }
        client.Join();
        EXPECT_EQ(result, VIP_SUCCESS);
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C19_InvalidStatesAndParameters) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Accept();
        peer.Await("disconnected");
      },
      [](Peer& peer) {
        Side side;
        NetAddress address = side.nic.Address(Name(0));
        EXPECT_EQ(::VipConnectRequest(side.vi, nullptr, address.get(), kLong, &side.peer),
                  VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectRequest(side.vi, address.get(), nullptr, kLong, &side.peer),
                  VIP_INVALID_PARAMETER);
        EXPECT_EQ(::VipConnectRequest(nullptr, address.get(), address.get(), kLong, &side.peer),
                  VIP_INVALID_PARAMETER);
        side.Connect();
        EXPECT_EQ(side.Request(0, kLong), VIP_INVALID_STATE) << "connected";
        peer.Tell("disconnected");
        peer.AwaitEnd();
        while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        EXPECT_EQ(side.Request(0, kLong), VIP_INVALID_STATE) << "error";
      });
}

// The requesting thread may still be on its way out of the call.
TEST(VipConnectRequest, S_AViWhoseRequestADisconnectHasEndedIsFree) {
  RunAlone([] {
    setenv("VIADUCT_GRACE_MS", "60000", 1);
    Side side;
    for (int round = 0; round < 200; ++round) {
      VIP_RETURN result = VIP_SUCCESS;
      Sleeper client([&] { result = side.Request(0, VIP_INFINITE); });
      while (side.State() != VIP_STATE_CONNECT_PENDING) sched_yield();
      client.AwaitAsleep();
      ASSERT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      if (round % 2 == 0) {
        EXPECT_NE(side.Request(0, 1), VIP_INVALID_STATE) << round;
      } else {
        VIP_VI_ATTRIBUTES attributes = Attributes();
        ASSERT_EQ(VipDestroyVi(side.vi), VIP_SUCCESS) << round;
        ASSERT_EQ(VipCreateVi(side.nic.handle, &attributes, nullptr, nullptr, &side.vi),
                  VIP_SUCCESS);
      }
      client.Join();
      EXPECT_TRUE(result == VIP_INVALID_STATE ||
                  (round % 2 != 0 && result == VIP_INVALID_PARAMETER))
          << result << " in round " << round;
    }
  });
}

int g_release[2];  // a pipe

void AwaitRelease(int) {
  char byte;
  while (read(g_release[0], &byte, 1) != 1) {
  }
}

// The requesting thread is held in a signal handler, and does not know of the failure yet.
TEST(VipConnectRequest, S_AViWhoseRequestHasFailedIsFree) {
  RunAlone([] {
    setenv("VIADUCT_GRACE_MS", "60000", 1);
    ASSERT_EQ(pipe(g_release), 0);
    struct sigaction action = {};
    action.sa_handler = AwaitRelease;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    Side side;
    NetAddress local = side.nic.Address(Name(1)), remote = side.nic.Address(Name(2));
    VIP_VI_ATTRIBUTES attributes = Attributes();
    const std::function<VIP_RETURN()> calls[] = {
        [&] { return VipSetViAttributes(side.vi, &attributes); },
        [&] { return side.Request(0, 1); },
        [&] { return VipConnectPeerRequest(side.vi, local.get(), remote.get(), 1); },
    };
    for (size_t i = 0; i < std::size(calls); ++i) {
      VIP_RETURN result = VIP_SUCCESS, next = VIP_SUCCESS;
      Sleeper client([&] { result = side.Request(0, 3000 * Slowness()); });
      client.AwaitAsleep();
      client.Interrupt(SIGUSR1);
      while (side.State() != VIP_STATE_IDLE) sched_yield();
      Sleeper other([&] { next = calls[i](); });
      other.AwaitAsleep();
      ASSERT_EQ(write(g_release[1], "", 1), 1);
      other.Join();
      client.Join();
      EXPECT_NE(next, VIP_INVALID_STATE) << i;
      EXPECT_TRUE(result == VIP_NO_MATCH || result == VIP_TIMEOUT) << result << " in " << i;
    }
  });
}

TEST(VipConnectRequest, C20_DiscriminatorsHaveALimit) {
  RunAlone([] {
    Side side;
    NetAddress local = side.nic.Address("client");
    NetAddress remote =
        side.nic.Address(std::string(side.nic.attributes.MaxDiscriminatorLen + 1, 'x'));
    EXPECT_EQ(::VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer),
              VIP_INVALID_PARAMETER);
    EXPECT_EQ(::VipConnectRequest(side.vi, remote.get(), local.get(), kLong, &side.peer),
              VIP_INVALID_PARAMETER);
  });
}

TEST(VipConnectRequest, C20_TheLongestDiscriminatorConnects) {
  const auto longest = [](const Nic& nic) {
    std::string name = Name(0);
    name.resize(nic.attributes.MaxDiscriminatorLen, 'x');
    return nic.Address(name);
  };
  RunPair(
      [=](Peer& peer) {
        Side side;
        NetAddress local = longest(side.nic);
        VIP_CONN_HANDLE connection;
        ASSERT_EQ(VipConnectWait(side.nic.handle, local.get(), kLong, side.requester.get(),
                                 &side.peer, &connection),
                  VIP_SUCCESS);
        EXPECT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS);
        peer.Await("done");
      },
      [=](Peer& peer) {
        setenv("VIADUCT_GRACE_MS", "20000", 1);  // the server may not be waiting yet
        Side side;
        NetAddress address = longest(side.nic);
        EXPECT_EQ(::VipConnectRequest(side.vi, address.get(), address.get(), kLong, &side.peer),
                  VIP_SUCCESS);
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C21_AfterAFailureTheViIsIdleKeepsReceivesAndMayTryAgain) {
  RunPair(
      [](Peer& peer) {
        Side side;
        peer.Await("no match");
        EXPECT_EQ(VipConnectReject(side.TakeRequest(Name(0))), VIP_SUCCESS);
        peer.Await("rejected");
        EXPECT_NE(side.TakeRequest(Name(0)), nullptr);
        peer.Await("timed out");
        side.Accept();
        side.SendText(0, "hello");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        side.Receive(0);
        EXPECT_EQ(side.Request(0, kLong), VIP_NO_MATCH);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("no match");
        VIP_RETURN result;
        while ((result = side.Request(0, kLong)) == VIP_NO_MATCH) {
        }
        EXPECT_EQ(result, VIP_REJECT);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        peer.Tell("rejected");
        while ((result = side.Request(0, 1000 * Slowness())) == VIP_NO_MATCH) {
        }
        EXPECT_EQ(result, VIP_TIMEOUT);
        EXPECT_EQ(side.State(), VIP_STATE_IDLE);
        VIP_DESCRIPTOR* done = nullptr;
        EXPECT_EQ(VipRecvDone(side.vi, &done), VIP_NOT_DONE);
        peer.Tell("timed out");
        side.Connect();
        EXPECT_EQ(side.TextOf(side.NextReceive()), "hello");
        peer.Tell("done");
      });
}

TEST(VipConnectRequest, C22_ARequestWithinTheGraceMeetsALaterWait) {
  RunPair(
      [](Peer& peer) {
        Side side;
        AwaitAsleep(peer.pid(), peer.Receive<pid_t>());
        side.Accept();
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        setenv("VIADUCT_GRACE_MS", "0", 1);
        EXPECT_EQ(side.Request(0, kLong), VIP_NO_MATCH) << "nobody waits yet";
        setenv("VIADUCT_GRACE_MS", "20000", 1);
        peer.Send(gettid());
        EXPECT_EQ(side.Request(0, kLong), VIP_SUCCESS);
        peer.Tell("done");
      });
}

// A server that polls with a time-out of 0, and does other work between its polls.
TEST(VipConnectRequest, C22_ARequestMeetsAServerThatLooksNowAndThen) {
  constexpr int kRequests = 5;
  RunPair(
      [](Peer&) {
        const Side keeps_the_nic_open;
        for (int i = 0; i < kRequests; ++i) {
          Side side;
          NetAddress local = side.nic.Address(Name(0));
          VIP_CONN_HANDLE connection = nullptr;
          VIP_RETURN looked;
          do {
            usleep(20'000);  // the other work
            looked = VipConnectWait(side.nic.handle, local.get(), 0, side.requester.get(),
                                    &side.peer, &connection);
          } while (looked == VIP_TIMEOUT);
          ASSERT_EQ(looked, VIP_SUCCESS);
          EXPECT_EQ(VipConnectAccept(connection, side.vi), VIP_SUCCESS);
          while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        }
      },
      [](Peer&) {
        setenv("VIADUCT_GRACE_MS", "20000", 1);  // the server may not have polled yet
        for (int i = 0; i < kRequests; ++i) {
          Side side;
          ASSERT_EQ(side.Request(0, kLong), VIP_SUCCESS) << i;
          EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
        }
      });
}

}  // namespace
}  // namespace viaduct::tests
