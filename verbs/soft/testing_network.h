// For tests: a network namespace of the test's own, whose only interface is the loopback.
#ifndef VIADUCT_VERBS_SOFT_TESTING_NETWORK_H_
#define VIADUCT_VERBS_SOFT_TESTING_NETWORK_H_

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "verbs/base/fd.h"

namespace viaduct::verbs {

inline bool SetLoopback(bool up) {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = up ? IFF_UP : 0;
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Call it before the control thread starts: a namespace belongs to a thread. False: not permitted.
inline bool EnterOwnNetwork() {
  return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
         SetLoopback(true);
}

// Changes a setting of that network, such as `ipv4/ip_nonlocal_bind`.
inline bool SetNetwork(const std::string& name, const std::string& value) {
  Fd file(open(("/proc/sys/net/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_TESTING_NETWORK_H_
