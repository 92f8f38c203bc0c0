#include "tests/conformance/harness/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace viaduct::tests {
namespace {

bool WriteFile(const char* path, const std::string& text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

// The user keeps its number, because the library compares the users of both ends.
bool UnshareAsUser() {
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  if (!WriteFile("/proc/self/uid_map", uid + " " + uid + " 1") ||
      !WriteFile("/proc/self/setgroups", "deny") ||
      !WriteFile("/proc/self/gid_map", gid + " " + gid + " 1")) {
    perror("user namespace");
    exit(1);  // neither in the old namespace nor set up in the new one
  }
  return true;
}

bool BringLoopbackUp() {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ifreq request = {};
  strcpy(request.ifr_name, "lo");
  bool ok = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  ok = ok && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return ok;
}

// The bound abstract name serves as the lock: the kernel drops it with the process.
uint16_t ReservePorts() {
  for (int base = 20000; base + kPortsPerRun <= 32000; base += kPortsPerRun) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const int length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "viaduct-test-ports-%d", base);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)) == 0) {
      return static_cast<uint16_t>(base);  // fd stays open
    }
    close(fd);
  }
  fprintf(stderr, "no free range of ports\n");
  exit(1);
}

}  // namespace

Network EnterNetwork(bool needs_hosts) {
  Network network;
  network.own = !needs_hosts && (unshare(CLONE_NEWNET) == 0 || UnshareAsUser());
  if (!network.own) {
    network.first_port = ReservePorts();
  } else if (!BringLoopbackUp()) {
    perror("loopback interface");
    exit(1);
  }
  return network;
}

}  // namespace viaduct::tests
