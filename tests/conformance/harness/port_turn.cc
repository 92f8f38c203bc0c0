#include "tests/conformance/harness/port_turn.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace viaduct::tests {
namespace {

// A listener at an abstract name holds the turn. The kernel drops it with the process, and ends the
// connections of the processes that wait.
int NewSocket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) return fd;
  perror("a turn at a port");
  exit(1);
}

}  // namespace

PortTurn::PortTurn(uint16_t port) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const int length =
      snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "viaduct-test-port-%d", port);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  for (fd_ = NewSocket(); bind(fd_, name, size) != 0;) {
    const int waiter = NewSocket();
    char byte;
    if (connect(waiter, name, size) == 0) [[maybe_unused]]
      const ssize_t end = read(waiter, &byte, 1);
    close(waiter);
  }
  listen(fd_, SOMAXCONN);
}

PortTurn::~PortTurn() { close(fd_); }

}  // namespace viaduct::tests
