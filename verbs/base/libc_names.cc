// What the shared libraries call instead of libc's functions of these names (libc_names.bzl): the
// dynamic linker would find the program's own function if it has one. Like libc's functions, but
// not cancellation points.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>

#include "verbs/base/uncancelled.h"

namespace uncancelled = viaduct::verbs::uncancelled;

extern "C" {

int __wrap_accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  return static_cast<int>(syscall(SYS_accept4, fd, address, length, flags));
}

int __wrap_bind(int fd, const sockaddr* address, socklen_t length) {
  return static_cast<int>(syscall(SYS_bind, fd, address, length));
}

int __wrap_close(int fd) { return static_cast<int>(uncancelled::Close(fd)); }

int __wrap_connect(int fd, const sockaddr* address, socklen_t length) {
  return static_cast<int>(syscall(SYS_connect, fd, address, length));
}

ssize_t __wrap_getrandom(void* bytes, size_t size, unsigned flags) {
  return syscall(SYS_getrandom, bytes, size, flags);
}

pid_t __wrap_gettid() { return static_cast<pid_t>(syscall(SYS_gettid)); }

int __wrap_listen(int fd, int backlog) {
  return static_cast<int>(syscall(SYS_listen, fd, backlog));
}

int __wrap_open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int __wrap_poll(pollfd* entries, nfds_t count, int milliseconds) {
  return static_cast<int>(syscall(SYS_poll, entries, count, milliseconds));
}

ssize_t __wrap_read(int fd, void* bytes, size_t size) { return syscall(SYS_read, fd, bytes, size); }

ssize_t __wrap_recv(int fd, void* bytes, size_t size, int flags) {
  return syscall(SYS_recvfrom, fd, bytes, size, flags, nullptr, nullptr);
}

ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  return uncancelled::ReceiveMessage(fd, message, flags);
}

ssize_t __wrap_send(int fd, const void* bytes, size_t size, int flags) {
  return uncancelled::Send(fd, bytes, size, flags);
}

ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  return uncancelled::SendMessage(fd, message, flags);
}

int __wrap_shutdown(int fd, int how) { return static_cast<int>(syscall(SYS_shutdown, fd, how)); }

int __wrap_socket(int domain, int type, int protocol) {
  return static_cast<int>(syscall(SYS_socket, domain, type, protocol));
}

}  // extern "C"
