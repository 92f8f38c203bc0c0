#include "verbs/base/cancellation.h"

#include <unistd.h>

#include <cerrno>

namespace viaduct::verbs {

namespace internal {

thread_local constinit int state_asleep = PTHREAD_CANCEL_DISABLE;

}  // namespace internal

// Asynchronous cancellation may strike between any two instructions: nothing here is to be given
// back, and no sanitizer adds anything.
__attribute__((no_sanitize("address", "thread", "undefined"))) long SleepIn(long number, long a,
                                                                            long b, long c, long d,
                                                                            long e, long f) {
  int type, state;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  pthread_setcancelstate(internal::state_asleep, &state);
  const long result = syscall(number, a, b, c, d, e, f);
  const int error = errno;
  pthread_setcancelstate(state, nullptr);
  pthread_setcanceltype(type, nullptr);
  errno = error;
  return result;
}

}  // namespace viaduct::verbs
