#include "verbs/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <random>

namespace viaduct::verbs {

uint64_t RandomWord() {
  const int saved = errno;
  uint64_t word = 0;
  ssize_t got;
  do {
    got = getrandom(&word, sizeof word, 0);  // never returns only part of so few bytes
  } while (got < 0 && errno == EINTR);
  errno = saved;
  if (got == sizeof word) return word;
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace viaduct::verbs
