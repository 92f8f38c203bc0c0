// Several waiters on one discriminator, in several processes: first come, first served. No waiter
// loses its place, and a dead one does not keep it. VIPL 4.3, VipConnectWait.
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vipl.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;

// An order to a server's process: wait for `timeout` and report the requester, or end.
struct Order {
  VIP_ULONG timeout;  // 0: end
};
struct Served {
  VIP_RETURN result;
  char requester[16];
};

// A process that waits when it is ordered to, accepts, and keeps the connections.
class Server {
 public:
  explicit Server(const std::string& name) {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    fflush(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      close(sockets[0]);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Peer boss(sockets[1], parent);
      try {
        Serve(boss, name);
      } catch (const std::exception& failure) {
        ADD_FAILURE() << failure.what();
      }
      fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    close(sockets[1]);
    peer_ = std::make_unique<Peer>(sockets[0], pid_);
    peer_->Await("open");
  }
  ~Server() {
    if (pid_ != 0) {
      peer_->Send(Order{0});
      Reap();
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns when the server stands in line: it sleeps, and not just for an answer on its way there.
  void Wait(VIP_ULONG timeout = kLong) {
    peer_->Send(Order{timeout});
    peer_->Await("waiting");
    AwaitAsleep(pid_, pid_, 100);
  }
  Served Result() { return peer_->Receive<Served>(); }
  void ExpectServed(const std::string& requester) {
    const Served served = Result();
    EXPECT_EQ(served.result, VIP_SUCCESS) << requester;
    EXPECT_EQ(served.requester, requester);
  }
  void Kill() {
    ASSERT_EQ(kill(pid_, SIGKILL), 0);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }
  void Stop() { StopProcess(pid_); }
  void Continue() { ASSERT_EQ(kill(pid_, SIGCONT), 0); }

 private:
  static void Serve(Peer& boss, const std::string& name) {
    Nic nic;
    std::vector<VIP_VI_HANDLE> vis;
    boss.Tell("open");
    for (;;) {
      const auto order = boss.Receive<Order>();
      if (order.timeout == 0) return;
      VIP_VI_ATTRIBUTES attributes = Attributes(), peer;
      VIP_VI_HANDLE vi;
      ASSERT_EQ(VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
      NetAddress local = nic.Address(name), remote;
      VIP_CONN_HANDLE connection;
      boss.Tell("waiting");
      Served served = {};
      served.result =
          VipConnectWait(nic.handle, local.get(), order.timeout, remote.get(), &peer, &connection);
      if (served.result == VIP_SUCCESS) {
        remote.discriminator().copy(served.requester, sizeof served.requester - 1);
        served.result = VipConnectAccept(connection, vi);
      }
      boss.Send(served);
    }
  }
  void Reap() {
    int status = -1;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0) << "a server failed, see above";
    pid_ = 0;
  }

  pid_t pid_ = 0;
  std::unique_ptr<Peer> peer_;
};

// Connects as `requester`, in a process of its own.
void Connect(const std::string& name, const std::string& requester) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    {
      Side side;
      NetAddress local = side.nic.Address(requester), remote = side.nic.Address(name);
      VIP_RETURN result;
      const int64_t end = NowMilliseconds() + static_cast<int64_t>(kLong);
      do {
        result = VipConnectRequest(side.vi, local.get(), remote.get(), kLong, &side.peer);
      } while (result == VIP_NO_MATCH && NowMilliseconds() < end);
      EXPECT_EQ(result, VIP_SUCCESS) << requester;
    }
    fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A thread of this process that stands in line once it is constructed, and accepts.
class ThreadInLine {
 public:
  ThreadInLine(Nic& nic, const std::string& name)
      : thread_([this, &nic, name] {
          NetAddress local = nic.Address(name), remote;
          VIP_VI_ATTRIBUTES attributes = Attributes(), theirs;
          VIP_VI_HANDLE vi;
          VIP_CONN_HANDLE connection;
          EXPECT_EQ(
              VipConnectWait(nic.handle, local.get(), kLong, remote.get(), &theirs, &connection),
              VIP_SUCCESS);
          requester_ = remote.discriminator();
          EXPECT_EQ(VipCreateVi(nic.handle, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
          EXPECT_EQ(VipConnectAccept(connection, vi), VIP_SUCCESS);
        }) {
    thread_.AwaitAsleep();
  }
  void ExpectServed(const std::string& requester) {
    thread_.Join();
    EXPECT_EQ(requester_, requester);
  }

 private:
  std::string requester_;
  Sleeper thread_;
};

// A discriminator that is searched for at hashed ports, and one that spells a port.
std::string Hashed() { return Name(0); }
std::string Direct() {
  const uint16_t port = Port(0);
  return std::string(6, '\0') + static_cast<char>(port >> 8) + static_cast<char>(port & 0xff);
}

class Line : public ::testing::TestWithParam<std::string (*)()> {};

TEST_P(Line, FirstComeFirstServed) {
  RunAlone([name = GetParam()()] {
    Server a(name), b(name), c(name);
    a.Wait();
    b.Wait();
    c.Wait();
    Connect(name, "1");
    a.ExpectServed("1");
    a.Wait();  // behind the others now
    Connect(name, "2");
    b.ExpectServed("2");
    Connect(name, "3");
    c.ExpectServed("3");
    c.Wait();
    b.Wait();
    Connect(name, "4");
    a.ExpectServed("4");
    Connect(name, "5");
    c.ExpectServed("5");
    Connect(name, "6");
    b.ExpectServed("6");
  });
}

// A waiter's turn comes when those before it have given up.
TEST_P(Line, WhoTimesOutLeavesItsPlace) {
  RunAlone([name = GetParam()()] {
    Server a(name), b(name), c(name);
    a.Wait(1000 * Slowness());
    b.Wait(1500 * Slowness());
    c.Wait();
    EXPECT_EQ(a.Result().result, VIP_TIMEOUT);
    EXPECT_EQ(b.Result().result, VIP_TIMEOUT);
    Connect(name, "1");
    c.ExpectServed("1");
  });
}

TEST_P(Line, WhoIsKilledLosesItsPlace) {
  RunAlone([name = GetParam()()] {
    Server a(name), b(name), c(name), d(name);
    a.Wait();
    b.Wait();
    c.Wait();
    d.Wait();
    b.Kill();
    Connect(name, "1");
    a.ExpectServed("1");
    a.Wait();
    Connect(name, "2");
    c.ExpectServed("2");
    a.Kill();  // it has the name's first port
    Connect(name, "3");
    d.ExpectServed("3");
  });
}

// A stopped waiter at the head of the line delays the others, but not for ever. (This is not about
// the waiter that has the name's first port: that case is a silent host.)
TEST_P(Line, WhoIsStoppedDoesNotStopTheOthers) {
  RunPair(
      [name = GetParam()()](Peer& peer) {
        Nic nic;
        ThreadInLine first(nic, name);
        peer.Tell("first");
        peer.Await("others");
        ThreadInLine last(nic, name);  // so that the first port is never given up
        peer.Tell("last");
        first.ExpectServed("1");
        last.ExpectServed("4");
        peer.Await("done");
      },
      [name = GetParam()()](Peer& peer) {
        peer.Await("first");
        Server b(name), c(name);
        b.Wait();
        c.Wait();
        peer.Tell("others");
        peer.Await("last");
        Connect(name, "1");
        b.Stop();
        Connect(name, "2");
        c.ExpectServed("2");
        b.Continue();
        Connect(name, "3");
        b.ExpectServed("3");
        Connect(name, "4");
        peer.Tell("done");
      });
}

// `a` is first in line, and stopped; `b` waits after it.
void WaitBehindAStopped(Server& a, Server& b) {
  a.Wait();
  a.Stop();
  b.Wait(50);
  EXPECT_EQ(b.Result().result, VIP_TIMEOUT);
  b.Wait();
}

// A later waiter stands in line after the stopped one, also for the stopped one's port.
TEST_P(Line, WhoIsStoppedInFrontKeepsItsPlace) {
  RunAlone([name = GetParam()()] {
    Server a(name), b(name);
    WaitBehindAStopped(a, b);
    a.Continue();
    Connect(name, "1");
    a.ExpectServed("1");
    Connect(name, "2");
    b.ExpectServed("2");
  });
}

TEST_P(Line, WhoIsStoppedInFrontAndKilledLosesItsPlace) {
  RunAlone([name = GetParam()()] {
    Server a(name), b(name);
    WaitBehindAStopped(a, b);
    a.Kill();
    Connect(name, "1");
    b.ExpectServed("1");
  });
}

// Waiters that do not answer are asked all at once, so the delay does not grow with their number.
TEST_P(Line, WhoIsStoppedDoesNotHoldUpATimeOut) {
  RunAlone([name = GetParam()()] {
    constexpr int64_t kAnyway = 5000;  // covers the time-out and the time granted for an answer
    Server a(name), b(name), c(name), d(name);
    a.Wait();
    b.Wait();
    c.Wait();
    b.Stop();
    c.Stop();
    const int64_t start = NowMilliseconds();
    d.Wait(50);
    EXPECT_EQ(d.Result().result, VIP_TIMEOUT);
    EXPECT_LT(NowMilliseconds() - start, kAnyway * Slowness());
    b.Continue();
    c.Continue();
    for (Server* server : {&a, &b, &c}) {
      Connect(name, "1");
      server->ExpectServed("1");
    }
  });
}

// Waiters of one process and of another take turns by the same rule.
TEST_P(Line, ThreadsAndProcessesStandInOneLine) {
  RunPair(
      [name = GetParam()()](Peer& peer) {
        Nic nic;
        ThreadInLine first(nic, name);
        peer.Tell("first");
        peer.Await("second");
        ThreadInLine third(nic, name);
        peer.Tell("third");
        first.ExpectServed("1");
        third.ExpectServed("3");
        peer.Await("done");
      },
      [name = GetParam()()](Peer& peer) {
        peer.Await("first");
        Server second(name);
        second.Wait();
        peer.Tell("second");
        peer.Await("third");
        Connect(name, "1");
        Connect(name, "2");
        Connect(name, "3");
        second.ExpectServed("2");
        peer.Tell("done");
      });
}

std::string NameOfKind(const ::testing::TestParamInfo<std::string (*)()>& info) {
  return info.param == &Direct ? "APort" : "HashedPorts";
}
INSTANTIATE_TEST_SUITE_P(Names, Line, ::testing::Values(&Hashed, &Direct), NameOfKind);

// There is no line at a port that a stranger has.
TEST(LineAtAPort, AStrangersPortIsAnErrorOfResources) {
  if (Wire() == "shm") GTEST_SKIP() << "a stranger has TCP ports";
  RunAlone([] {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(Port(0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(socket, 1), 0);
    Nic nic;
    NetAddress local = nic.Address(Direct()), remote;
    VIP_VI_ATTRIBUTES peer;
    VIP_CONN_HANDLE connection;
    testing::internal::CaptureStderr();
    EXPECT_EQ(VipConnectWait(nic.handle, local.get(), kLong, remote.get(), &peer, &connection),
              VIP_ERROR_RESOURCE);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("something else holds that port"), std::string::npos) << said;
    close(socket);
  });
}

}  // namespace
}  // namespace viaduct::tests
