#include "verbs/soft/iwarp/socket.h"

#include "verbs/base/at_fork.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit FdTable sockets;

const AtFork at_fork(nullptr, nullptr, [] { sockets.CloseInForkChild(); });

}  // namespace

Socket::Socket(Fd fd) : TabledFd(sockets, std::move(fd)) {}

FdTable& Socket::Table() { return sockets; }

}  // namespace viaduct::verbs::iwarp
