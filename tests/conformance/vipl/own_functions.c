// Includes no header that declares the functions below: a program that has such functions does not.
#include "tests/conformance/vipl/own_functions.h"

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

extern long syscall(long number, ...);

static const char *volatile called;

const char *OwnFunctionCalled(void) { return called != NULL ? called : ""; }

// Counts only the libraries under test: the harness and the libraries of a device's vendor mean
// libc's functions.
static void Note(const void *caller, const char *name) {
  Dl_info from;
  if (dladdr(caller, &from) == 0 || from.dli_fname == NULL) return;
  if (strstr(from.dli_fname, "/libviaduct") != NULL || strstr(from.dli_fname, "/libvipl") != NULL) {
    called = name;
  }
}

#define OWN(name, number)                                                            \
  __attribute__((visibility("default"))) long name(long a, long b, long c, long d) { \
    Note(__builtin_return_address(0), #name);                                        \
    return syscall(number, a, b, c, d);                                              \
  }

OWN(accept4, SYS_accept4)
OWN(bind, SYS_bind)
OWN(close, SYS_close)
OWN(connect, SYS_connect)
OWN(getrandom, SYS_getrandom)
OWN(gettid, SYS_gettid)
OWN(listen, SYS_listen)
OWN(open, SYS_open)
OWN(poll, SYS_poll)
OWN(read, SYS_read)
OWN(recvmsg, SYS_recvmsg)
OWN(sendmsg, SYS_sendmsg)
OWN(shutdown, SYS_shutdown)
OWN(socket, SYS_socket)

__attribute__((visibility("default"))) long recv(long a, long b, long c, long d) {
  Note(__builtin_return_address(0), "recv");
  return syscall(SYS_recvfrom, a, b, c, d, 0L, 0L);
}

__attribute__((visibility("default"))) long send(long a, long b, long c, long d) {
  Note(__builtin_return_address(0), "send");
  return syscall(SYS_sendto, a, b, c, d, 0L, 0L);
}
