#include "verbs/soft/iwarp/socket.h"

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

bool InForkChild() { return sockets.in_fork_child(); }

}  // namespace viaduct::verbs::iwarp
