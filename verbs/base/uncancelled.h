// System calls for posts and polls, which hold locks. libc's functions are cancellation points,
// whatever their flags (cancellation.h); syscall() is not. Each function is the call of its name.
#ifndef VIADUCT_VERBS_BASE_UNCANCELLED_H_
#define VIADUCT_VERBS_BASE_UNCANCELLED_H_

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>

namespace viaduct::verbs::uncancelled {

inline ssize_t Write(int fd, const void* bytes, size_t size) {
  return syscall(SYS_write, fd, bytes, size);
}

inline ssize_t WriteParts(int fd, const iovec* parts, int count) {  // writev
  return syscall(SYS_writev, fd, parts, count);
}

// Without O_CREAT.
inline int Open(const char* path, int flags) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, 0));
}

inline long Close(int fd) { return syscall(SYS_close, fd); }

inline ssize_t Send(int fd, const void* bytes, size_t size, int flags) {
  return syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}

inline ssize_t SendMessage(int fd, const msghdr* message, int flags) {
  return syscall(SYS_sendmsg, fd, message, flags);
}

inline ssize_t ReceiveMessage(int fd, msghdr* message, int flags) {
  return syscall(SYS_recvmsg, fd, message, flags);
}

// Polls one descriptor and waits at most `seconds`.
inline long Poll(pollfd* entry, time_t seconds = 0) {
  timespec limit = {seconds, 0};
  return syscall(SYS_ppoll, entry, 1, &limit, nullptr, 0);
}

// Takes `signal`, which is blocked, from this thread's pending signals if it is there
// (rt_sigtimedwait).
inline long TakeSignal(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  const timespec now = {};
  constexpr size_t kKernelsBytes = (_NSIG - 1) / 8;
  return syscall(SYS_rt_sigtimedwait, &set, nullptr, &now, kKernelsBytes);
}

inline long Allocate(int fd, int mode, off_t offset, off_t bytes) {
  return syscall(SYS_fallocate, fd, mode, offset, bytes);
}

}  // namespace viaduct::verbs::uncancelled

#endif  // VIADUCT_VERBS_BASE_UNCANCELLED_H_
