#include "verbs/base/cancellation.h"

#include <unistd.h>

#include <cerrno>

namespace viaduct::verbs {

namespace internal {

thread_local constinit int state_asleep = PTHREAD_CANCEL_DISABLE;

}  // namespace internal

// Asynchronous cancellation may strike between any two instructions, so nothing here needs to be
// released, and no sanitizer adds code.
//
// Only the type decides whether glibc's signal strikes, and the signal may come late, when the
// state has changed: so the type is asynchronous only where cancellation may strike. A request that
// was pending before strikes where the type is set, from where glibc reports PTHREAD_CANCELED, and
// not where the state is set.
__attribute__((no_sanitize("address", "thread", "undefined"))) long SleepIn(long number, long a,
                                                                            long b, long c, long d,
                                                                            long e, long f) {
  if (internal::state_asleep == PTHREAD_CANCEL_DISABLE) return syscall(number, a, b, c, d, e, f);
  int type, state;
  pthread_setcancelstate(internal::state_asleep, &state);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  const long result = syscall(number, a, b, c, d, e, f);
  const int error = errno;
  pthread_setcanceltype(type, nullptr);
  pthread_setcancelstate(state, nullptr);
  errno = error;
  return result;
}

}  // namespace viaduct::verbs
