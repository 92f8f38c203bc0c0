#include "verbs/soft/foreign_fd.h"

#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>

#include "verbs/base/at_fork.h"
#include "verbs/base/back_off.h"
#include "verbs/base/engine_thread.h"
#include "verbs/base/fd_table.h"

namespace viaduct::verbs {
namespace {

constexpr size_t kMostToClose = 64;

// The descriptors that wait. Each is counted before it is entered, and counts until it is closed.
// Whoever raises the count from 0 starts the thread, which ends when it has lowered the count to 0.
// So there is one thread at a time, without a lock.
constinit FdTable to_close;
constinit std::atomic<size_t> unclosed{0};

void CloseAll() {
  BackOff back_off;
  bool done = false;
  while (!done) {
    to_close.ForEach([&done](int fd) {
      if (done) return;  // `fd` is for the next thread
      to_close.Remove(fd);
      Fd(fd).Reset();
      done = unclosed.fetch_sub(1) == 1;
    });
    if (!done) back_off.Pause();  // a descriptor is counted, and about to be entered
  }
}

void* ThreadMain(void*) {
  pthread_setname_np(pthread_self(), "viaduct-close");
  CloseAll();
  return nullptr;
}

// Descriptors that wait at a fork belong to the parent. The child's copies stay open, since closing
// them could block there for as long.
void ForgetAllInForkChild() {
  to_close.ForEach([](int fd) { to_close.Remove(fd); });
  unclosed.store(0);
}

const AtFork at_fork(nullptr, nullptr, &ForgetAllInForkChild);

bool Reserve(int fd) {
  try {
    return to_close.Reserve(fd);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// For a socket that has been shut down, so that nothing more arrives. A read of 0 bytes means the
// end or an empty message; only a message has a sender, which the control data name.
bool HoldsMessages(int socket) {
  const int on = 1;
  if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return true;
  char byte;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec part = {&byte, sizeof byte};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return errno != ENOTCONN;  // it was never connected
  return got > 0 || header.msg_controllen != 0;
}

}  // namespace

void CloseElsewhere(Fd fd) {
  if (!fd.valid() || !Reserve(fd.get())) return;
  const bool first = unclosed.fetch_add(1) == 0;
  to_close.Add(fd.Release());
  if (first && StartEngineThread(&ThreadMain, nullptr) != 0) CloseAll();
}

bool TooManyToClose() { return unclosed.load(std::memory_order_relaxed) >= kMostToClose; }

bool EndGiven(int /*fd*/) { return false; }

bool EndChannel(int socket) {
  shutdown(socket, SHUT_RDWR);
  return !HoldsMessages(socket);
}

bool EndListener(int socket) {
  shutdown(socket, SHUT_RDWR);  // nobody can connect any more
  for (;;) {
    const ChannelFd waiting(accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (waiting.valid()) continue;
    if (IsShortage(errno)) return false;
    if (errno != EINTR && errno != ECONNABORTED) return true;
  }
}

}  // namespace viaduct::verbs
