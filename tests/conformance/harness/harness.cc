#include "tests/conformance/harness/harness.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>

#include "gtest/gtest.h"
#include "tests/conformance/harness/failure_flag.h"
#include "tests/conformance/harness/network.h"
#include "tests/conformance/sim/clock.h"

namespace viaduct::tests {
namespace {

constexpr int kFailed = 1;
constexpr int kSkipped = 77;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

// Ends a body whose other side is gone. The failure has already been recorded.
struct PeerGone {};

// The functions of the simulation's engine, if that is the engine that was loaded.
struct SimulatedClock {
  decltype(&viaduct_simulation_now) now = nullptr;
  decltype(&viaduct_simulation_pass) pass = nullptr;
};

struct Settings {
  std::string wire;
  int slowness = 1;
  Network network;
  SimulatedClock clock;  // over sim
};
Settings& settings() {
  static auto* settings = new Settings;
  return *settings;
}

timespec MachineNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now;
}

int64_t NowMilliseconds() {
  const timespec now = MachineNow();
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

int64_t DeadlineAfter(int seconds) {
  return NowMilliseconds() + int64_t{seconds} * settings().slowness * 1000;
}

SimulatedClock LoadedClock() {
  SimulatedClock clock;
  clock.now = reinterpret_cast<decltype(clock.now)>(dlsym(RTLD_DEFAULT, "viaduct_simulation_now"));
  clock.pass =
      reinterpret_cast<decltype(clock.pass)>(dlsym(RTLD_DEFAULT, "viaduct_simulation_pass"));
  return clock;
}

int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Runs in the child and never returns.
[[noreturn]] void RunBody(pid_t parent, const std::function<void()>& body, FailureFlag& flag) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  flag.Watch();
  if (getppid() != parent) _exit(kFailed);
  try {
    body();
  } catch (const PeerGone&) {
  } catch (const std::exception& e) {
    ADD_FAILURE() << "exception: " << e.what();
  }
  const bool failed = ::testing::Test::HasFailure();
  const bool skipped = ::testing::Test::IsSkipped();
  fflush(nullptr);
  const int status = failed ? kFailed : skipped ? kSkipped : 0;
  // Only exit writes the coverage data, each library for itself.
  if (getenv("COVERAGE_DIR") != nullptr) exit(status);
  _exit(status);
}

class Child {
 public:
  Child(const char* name, const std::function<void()>& body) : name_(name) {
    fflush(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) RunBody(parent, body, failed_);
    if (pid_ > 0) pidfd_ = OpenPidfd(pid_);
  }
  ~Child() {
    if (pidfd_ >= 0) close(pidfd_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reports how the child ended; kills it at the deadline.
  void Finish(int64_t deadline, bool killed_is_fine) {
    ASSERT_GT(pid_, 0) << "fork: " << strerror(errno);
    ASSERT_GE(pidfd_, 0) << "pidfd_open: " << strerror(errno);
    pollfd wait = {pidfd_, POLLIN, 0};
    int64_t left;
    int found;
    do {  // at least once: the other side may have taken all the time
      left = std::max<int64_t>(deadline - NowMilliseconds(), 0);
      found = poll(&wait, 1, static_cast<int>(left));
    } while (found < 0 && errno == EINTR);
    if ((wait.revents & POLLIN) == 0) {
      ADD_FAILURE() << "the " << name_ << " did not end in time";
      kill(pid_, SIGKILL);
      killed_is_fine = true;
    }
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
      if (!(killed_is_fine && WTERMSIG(status) == SIGKILL)) {
        ADD_FAILURE() << "the " << name_ << " died of signal " << WTERMSIG(status);
      }
    } else if (WEXITSTATUS(status) == kSkipped) {
      skipped_ = true;
    } else if (WEXITSTATUS(status) != 0 && !failed_.raised()) {
      ADD_FAILURE() << "the " << name_ << " ended with status " << WEXITSTATUS(status);
    }
    if (failed_.raised()) ADD_FAILURE() << "the " << name_ << " failed, see above";
  }
  bool skipped() const { return skipped_; }

 private:
  const char* const name_;
  FailureFlag failed_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
  bool skipped_ = false;
};

}  // namespace

void Peer::Write(const void* data, size_t size) {
  if (send(socket_, data, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
    ADD_FAILURE() << "the other side has ended";
    throw PeerGone();
  }
}

void Peer::Read(void* data, size_t size) {
  ssize_t got;
  do {
    got = recv(socket_, data, size, MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    ADD_FAILURE() << "the other side has ended";
    throw PeerGone();
  }
  if (got != static_cast<ssize_t>(size)) {
    ADD_FAILURE() << "a message of " << got << " bytes instead of " << size;
    throw PeerGone();
  }
}

void Peer::Tell(const std::string& step) { Write(step.data(), step.size()); }

void Peer::Await(const std::string& step) {
  char text[256];
  ssize_t got;
  do {
    got = recv(socket_, text, sizeof text, 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    ADD_FAILURE() << "the other side has ended before \"" << step << '"';
    throw PeerGone();
  }
  if (std::string(text, static_cast<size_t>(got)) != step) {
    ADD_FAILURE() << "\"" << std::string(text, static_cast<size_t>(got)) << "\" instead of \""
                  << step << '"';
    throw PeerGone();
  }
}

void Peer::AwaitEnd() {
  char byte;
  ssize_t got;
  do {
    got = recv(socket_, &byte, 1, 0);
  } while (got > 0 || (got < 0 && errno == EINTR));
}

void RunPair(const std::function<void(Peer&)>& server, const std::function<void(Peer&)>& client,
             const PairOptions& options) {
  ASSERT_NE(Wire(), "sim") << "a second process has a simulation of its own";
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0) << strerror(errno);
  // Each side learns the other's pid once both exist.
  const int64_t deadline = DeadlineAfter(options.seconds);
  auto side = [&sockets](int index, const std::function<void(Peer&)>& body) {
    return [&sockets, index, &body] {
      close(sockets[1 - index]);
      const pid_t self = getpid();
      pid_t other = 0;
      if (send(sockets[index], &self, sizeof self, MSG_NOSIGNAL) != sizeof self ||
          recv(sockets[index], &other, sizeof other, 0) != sizeof other) {
        ADD_FAILURE() << "the other side did not start";
        return;
      }
      Peer peer(sockets[index], other);
      body(peer);
    };
  };
  Child server_process("server", side(0, server));
  Child client_process("client", side(1, client));
  close(sockets[0]);
  close(sockets[1]);
  client_process.Finish(deadline, options.client_is_killed);
  server_process.Finish(deadline, options.server_is_killed);
  if (client_process.skipped() || server_process.skipped()) GTEST_SKIP() << "see above";
}

void RunAlone(const std::function<void()>& body, int seconds) {
  const int64_t deadline = DeadlineAfter(seconds);
  Child process("test's process", body);
  process.Finish(deadline, false);
  if (process.skipped()) GTEST_SKIP() << "see above";
}

uint16_t Port(int n) { return static_cast<uint16_t>(settings().network.first_port + n); }
bool HasOwnNetwork() { return settings().network.own; }
int Slowness() { return settings().slowness; }
const std::string& Wire() { return settings().wire; }

int64_t Now() {
  if (settings().clock.now != nullptr) return settings().clock.now();
  const timespec now = MachineNow();
  return int64_t{now.tv_sec} * kNanosPerSecond + now.tv_nsec;
}

void PassTime(int64_t nanoseconds) {
  if (settings().clock.pass != nullptr) return settings().clock.pass(nanoseconds);
  timespec rest = {nanoseconds / kNanosPerSecond, nanoseconds % kNanosPerSecond};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

void SetUp(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--wire=", 7) == 0) settings().wire = argv[i] + 7;
    if (strncmp(argv[i], "--slowness=", 11) == 0) settings().slowness = atoi(argv[i] + 11);
  }
  if (settings().wire == "sim") {
    settings().clock = LoadedClock();
    if (settings().clock.now == nullptr || settings().clock.pass == nullptr) {
      fprintf(stderr, "the engine that is loaded has no simulation\n");
      exit(1);
    }
    unsetenv("VIADUCT_WIRE");
  } else if (!settings().wire.empty()) {
    setenv("VIADUCT_WIRE", settings().wire.c_str(), 1);
  }
  settings().network = EnterNetwork(/*needs_hosts=*/settings().wire == "rdma");
  printf("wire: %s, network: %s, ports from %d\n",
         settings().wire.empty() ? "default" : settings().wire.c_str(),
         settings().network.own ? "own namespace" : "the host's", settings().network.first_port);
}

}  // namespace viaduct::tests
