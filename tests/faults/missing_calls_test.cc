// A kernel, or a container's filter, without some of the newer system calls: the library goes on
// with what there is.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "verbs/base/call_filter.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace viaduct::tests {
namespace {

// From now on these calls fail with that error in this process: in a kernel that lacks them it is
// ENOSYS, in many filters of containers EPERM.
void Forbid(const std::vector<long>& calls, int error) {
  ASSERT_TRUE(verbs::ForbidCalls(calls, error));
  for (long call : calls) {
    ASSERT_EQ(syscall(call, 0, 0, 0, 0, 0, 0), -1);
    ASSERT_EQ(errno, error);
  }
}

// A filter such as systemd's RestrictAddressFamilies=AF_INET makes.
void ForbidUnixSockets() {
  ASSERT_TRUE(verbs::InstallCallFilter({
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }));
  ASSERT_EQ(socket(AF_UNIX, SOCK_STREAM, 0), -1);
}

int64_t ProcessorMicroseconds() {
  rusage usage;
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * int64_t{1'000'000} +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

// Expects that nothing comes, and that no thread of this process is busy meanwhile.
void ExpectSleep(DAT_EVD_HANDLE evd) {
  const int64_t before = ProcessorMicroseconds();
  DAT_EVENT event;
  DAT_COUNT more = 0;
  constexpr DAT_TIMEOUT kSleep = kSecond;
  EXPECT_TRUE(Fails(dat_evd_wait(evd, kSleep, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
  EXPECT_LT(ProcessorMicroseconds() - before, kSleep / 10) << "it does not sleep";
}

// Messages to and fro between sleepers, a sleep that nothing ends, and the end of the connection.
void Talk(Side& side, Peer& peer, DAT_EP_HANDLE ep, bool first) {
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) side.PostReceive(ep, 1);
  peer.Tell("posted");
  peer.Await("posted");
  for (int round = 0; round < kRounds; ++round) {
    if (first) Must(side.TrySend(ep, 2));
    EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
    if (!first) Must(side.TrySend(ep, 2));
    EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
  }
  ExpectSleep(side.receive_evd);
  peer.Tell("slept");
  peer.Await("slept");
  if (first) Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
}

// `forbid_later` is called when both sides are connected.
void ConnectedAfter(
    const std::function<void()>& forbid, const std::function<void()>& forbid_later = [] {}) {
  RunPair(
      [&](Peer& peer) {
        forbid();
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        forbid_later();
        Talk(side, peer, ep, false);
      },
      [&](Peer& peer) {
        forbid();
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        forbid_later();
        Talk(side, peer, ep, true);
      });
}

void ConnectedWithout(const std::vector<long>& calls, int error) {
  ConnectedAfter([&] { Forbid(calls, error); });
}

TEST(MissingCalls, FutexWaitv) { ConnectedWithout({SYS_futex_waitv}, ENOSYS); }
TEST(MissingCalls, FutexWaitvInTheMiddle) {
  ConnectedAfter([] {}, [] { Forbid({SYS_futex_waitv}, EPERM); });
}
TEST(MissingCalls, Membarrier) { ConnectedWithout({SYS_membarrier}, ENOSYS); }
TEST(MissingCalls, PidfdOpen) { ConnectedWithout({SYS_pidfd_open}, ENOSYS); }
TEST(MissingCalls, EpollPwait2) { ConnectedWithout({SYS_epoll_pwait2}, ENOSYS); }
TEST(MissingCalls, Getrandom) { ConnectedWithout({SYS_getrandom}, ENOSYS); }

const std::vector<long>& Newer() {
  static const std::vector<long> calls = {SYS_futex_waitv, SYS_membarrier, SYS_pidfd_open,
                                          SYS_epoll_pwait2, SYS_process_vm_readv};
  return calls;
}
TEST(MissingCalls, AllOfThem) { ConnectedWithout(Newer(), ENOSYS); }
TEST(MissingCalls, AllOfThemByAFilter) { ConnectedWithout(Newer(), EPERM); }

// No connection can be accepted, which is logged once, and one that waits at the listener does not
// keep the process busy.
TEST(MissingCalls, Accept4) {
  RunPair(
      [](Peer& peer) {
        Forbid({SYS_accept4}, EPERM);
        testing::internal::CaptureStderr();
        Side side;
        DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
        Must(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
        peer.Tell("listening");
        peer.Await("asked");
        ExpectSleep(side.cr_evd);
        peer.Tell("slept");
        const std::string log = testing::internal::GetCapturedStderr();
        const size_t line = log.find("cannot accept");
        EXPECT_NE(line, std::string::npos) << log;
        EXPECT_EQ(log.find("cannot accept", line + 1), std::string::npos) << log;
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Tell("asked");
        peer.Await("slept");
      });
}

// Without them nobody on this host can be met over shared memory, and what is left is iWARP.
TEST(MissingSockets, UnixOnesByDefault) {
  ConnectedAfter([] {
    unsetenv("VIADUCT_WIRE");
    ForbidUnixSockets();
  });
}

// As a program does that locks itself in once it has begun.
TEST(MissingSockets, UnixOnesSinceTheOpen) {
  RunAlone([] {
    unsetenv("VIADUCT_WIRE");
    Side side;
    ForbidUnixSockets();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    Must(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
    const DAT_EP_HANDLE ep = side.NewEp();
    Must(side.TryConnect(ep, Port(1)));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
  });
}

TEST(MissingSockets, UnixOnesWithOneWire) {
  if (Wire() == "iwarp") return ConnectedAfter(ForbidUnixSockets);
  RunAlone([] {
    ForbidUnixSockets();
    Side side;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    EXPECT_TRUE(Fails(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
                      DAT_CONN_QUAL_UNAVAILABLE));
  });
}

}  // namespace
}  // namespace viaduct::tests
