// How a thread waits for another one that has what it needs for nanoseconds, and may have been
// preempted with it.
#ifndef VIADUCT_VERBS_BASE_BACK_OFF_H_
#define VIADUCT_VERBS_BASE_BACK_OFF_H_

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "verbs/base/clock.h"

namespace viaduct::verbs {

// Tells the processor that this is a spin loop.
inline void Relax() { __builtin_ia32_pause(); }

// Not by libc's function, which is a cancellation point. Of less than a second.
inline void Nap(Nanos time) {
  const int saved = errno;
  const timespec request = {0, time};
  syscall(SYS_nanosleep, &request, nullptr);
  errno = saved;
}

// A local of the thread that waits, which calls Pause as long as it has to.
class BackOff {
 public:
  static constexpr int kSpins = 200;

  // `spins`: how often it only spins.
  explicit BackOff(int spins = kSpins) : spins_(spins) {}

  void Pause() {
    if (round_ < spins_) {
      ++round_;
      Relax();
    } else if (round_ < spins_ + kYields) {
      ++round_;
      sched_yield();
    } else {
      Nap(kNap);
    }
  }

 private:
  static constexpr int kYields = 100;
  // A thread of a real-time priority yields to no lower one, and may have its processor for itself.
  static constexpr Nanos kNap = 50'000;

  const int spins_;
  int round_ = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BACK_OFF_H_
