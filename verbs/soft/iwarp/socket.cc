#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit FdTable sockets;

}  // namespace

Socket::Socket(Fd fd) : TabledFd(sockets, std::move(fd)) {}

FdTable& Socket::Table() { return sockets; }

}  // namespace viaduct::verbs::iwarp
