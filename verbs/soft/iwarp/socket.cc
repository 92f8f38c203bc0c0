#include "verbs/soft/iwarp/socket.h"

#include <sys/socket.h>

#include <atomic>

namespace viaduct::verbs::iwarp {
namespace {

constinit FdTable sockets;
constinit std::atomic<bool> hooked{false};

}  // namespace

Socket::Socket(Fd fd) : TabledFd(sockets, std::move(fd)) {}

FdTable& Socket::Table() { return sockets; }

void CloseSocketsInForkChildren(EventLoop& loop) {
  if (!hooked.exchange(true)) loop.OnForkChild([] { sockets.CloseInForkChild(); });
}

void ShutDownSocketsAtExit(EventLoop& loop) {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  loop.OnExit([] { sockets.ForEach([](int fd) { shutdown(fd, SHUT_WR); }); });
}

bool InForkChild() { return sockets.in_fork_child(); }

}  // namespace viaduct::verbs::iwarp
