#include "tests/faults/failing_calls.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <thread>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace viaduct::tests {
namespace {

bool IsAdd(const uint64_t* arguments) { return arguments[1] == EPOLL_CTL_ADD; }
bool IsDuplicate(const uint64_t* arguments) {
  return arguments[1] == F_DUPFD || arguments[1] == F_DUPFD_CLOEXEC;
}
bool IsFutexWait(const uint64_t* arguments) {
  const uint64_t operation = arguments[1] & FUTEX_CMD_MASK;
  return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}
// Shared memory and stacks of threads; the others are malloc's.
bool IsOurMapping(const uint64_t* arguments) {
  return (arguments[3] & (MAP_SHARED | MAP_STACK)) != 0;
}

constexpr FailingCall kCalls[] = {
    {"accept4", SYS_accept4, EMFILE, nullptr},
    {"bind", SYS_bind, ENOMEM, nullptr},
    {"clone3", SYS_clone3, EAGAIN, nullptr},
    {"connect", SYS_connect, EADDRNOTAVAIL, nullptr},
    {"epoll_create1", SYS_epoll_create1, EMFILE, nullptr},
    {"epoll_ctl", SYS_epoll_ctl, ENOSPC, IsAdd},
    {"epoll_pwait2", SYS_epoll_pwait2, EINTR, nullptr},
    {"epoll_wait", SYS_epoll_wait, EINTR, nullptr},
    {"eventfd2", SYS_eventfd2, EMFILE, nullptr},
    {"fallocate", SYS_fallocate, ENOSPC, nullptr},
    {"fcntl", SYS_fcntl, EMFILE, IsDuplicate},
    {"ftruncate", SYS_ftruncate, EINTR, nullptr},
    {"futex", SYS_futex, EINTR, IsFutexWait},
    {"futex_waitv", SYS_futex_waitv, EINTR, nullptr},
    {"getpeername", SYS_getpeername, ENOTCONN, nullptr},
    {"getsockname", SYS_getsockname, ENOBUFS, nullptr},
    {"getsockopt", SYS_getsockopt, ENOMEM, nullptr},
    {"ioctl", SYS_ioctl, EIO, nullptr},
    {"listen", SYS_listen, EADDRINUSE, nullptr},
    {"madvise", SYS_madvise, ENOMEM, nullptr},
    {"membarrier", SYS_membarrier, ENOMEM, nullptr},
    {"memfd_create", SYS_memfd_create, ENFILE, nullptr},
    {"mmap", SYS_mmap, ENOMEM, IsOurMapping},
    {"openat", SYS_openat, EMFILE, nullptr},
    {"pidfd_open", SYS_pidfd_open, EMFILE, nullptr},
    {"poll", SYS_poll, EINTR, nullptr},
    {"ppoll", SYS_ppoll, EINTR, nullptr},
    {"prctl", SYS_prctl, EPERM, nullptr},
    {"pwrite64", SYS_pwrite64, ENOSPC, nullptr},
    {"recvfrom", SYS_recvfrom, ENOMEM, nullptr},
    {"recvmsg", SYS_recvmsg, ENOMEM, nullptr},
    {"sendmsg", SYS_sendmsg, ENOBUFS, nullptr},
    {"sendto", SYS_sendto, ENOBUFS, nullptr},
    {"setsockopt", SYS_setsockopt, ENOMEM, nullptr},
    {"socket", SYS_socket, ENFILE, nullptr},
};

std::atomic<bool> g_failed{false};

// From now on the calls that `program` selects, of this thread and of those that it starts, ask for
// a decision at the returned descriptor; -1 if the kernel cannot do that.
int Filter(const sock_fprog& program) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}
int FilterCalls(long number) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return Filter({sizeof filter / sizeof *filter, filter});
}
int FilterAllCalls() {
  sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
  return Filter({sizeof filter / sizeof *filter, filter});
}

// Decides about a call: 0 if the kernel is to perform it, else the error with which it fails.
using Judge = std::function<int(const seccomp_data& call)>;

// Answers the calls that ask, as long as the process lives.
void Answer(int listener, const Judge& judge) {
  for (;;) {
    seccomp_notif question = {};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) continue;  // it was interrupted
    seccomp_notif_resp answer = {};
    answer.id = question.id;
    answer.error = -judge(question.data);
    if (answer.error == 0) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

// Once in a process. `filter` is one of the two above.
bool Ask(const Judge& judge, const std::function<int()>& filter) {
  // The thread that answers begins before the filter, so its own calls do not ask; it must not be
  // woken up by a call that asks.
  static std::atomic<int> listener{0};
  std::thread([judge] {
    while (listener.load() == 0) std::this_thread::yield();
    if (listener.load() > 0) Answer(listener.load(), judge);
  }).detach();
  listener.store(filter());
  return listener.load() > 0;
}

}  // namespace

absl::Span<const FailingCall> FailingCalls() { return kCalls; }

bool FailCall(const FailingCall& call, int n) {
  const auto judge = [&call, n, seen = 0](const seccomp_data& asked) mutable {
    const auto* arguments = reinterpret_cast<const uint64_t*>(asked.args);
    const bool counts = call.counts == nullptr || call.counts(arguments);
    if (!counts || ++seen != n) return 0;
    g_failed.store(true);
    return call.error;
  };
  return Ask(judge, [&call] { return FilterCalls(call.number); });
}

bool DieAtCall(int n) {
  const auto judge = [n, seen = 0](const seccomp_data&) mutable {
    if (++seen == n) kill(getpid(), SIGKILL);
    return 0;
  };
  return Ask(judge, FilterAllCalls);
}

bool CallHasFailed() { return g_failed.load(); }

}  // namespace viaduct::tests
