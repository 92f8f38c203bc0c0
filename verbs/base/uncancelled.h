// Messages on sockets. The calls of libc are cancellation points, whatever their flags; the data
// path makes them with locks held, and its posts and polls are none.
#ifndef VIADUCT_VERBS_BASE_UNCANCELLED_H_
#define VIADUCT_VERBS_BASE_UNCANCELLED_H_

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace viaduct::verbs {

// sendmsg and recvmsg, but no cancellation points: syscall() is none.
inline ssize_t SendMessage(int fd, const msghdr* message, int flags) {
  return syscall(SYS_sendmsg, fd, message, flags);
}

inline ssize_t ReceiveMessage(int fd, msghdr* message, int flags) {
  return syscall(SYS_recvmsg, fd, message, flags);
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_UNCANCELLED_H_
