// For tests: whether the other end of a socket has gone.
#ifndef VIADUCT_VERBS_SOFT_TESTING_HANG_UP_H_
#define VIADUCT_VERBS_SOFT_TESTING_HANG_UP_H_

#include <poll.h>

namespace viaduct::verbs {

// Waits for the end of a socket of which nothing remains to be read, no longer than 20 seconds.
inline bool HearsTheEnd(int socket) {
  pollfd entry = {socket, POLLIN, 0};
  return poll(&entry, 1, 20'000) == 1 && (entry.revents & POLLHUP) != 0;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_TESTING_HANG_UP_H_
