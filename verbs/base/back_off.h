// How a thread waits for something that another thread holds only for nanoseconds, unless that
// thread has been preempted.
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

// Sleeps, signals or not. Until a point in time: what the kernel says is left of a duration
// includes its slack, so that with many signals it would never end. Bypasses libc's function, which
// is a cancellation point.
inline void Nap(Nanos time) {
  const int saved = errno;
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const Nanos nanos = until.tv_nsec + time;
  until.tv_sec += static_cast<time_t>(nanos / kNanosPerSecond);
  until.tv_nsec = static_cast<long>(nanos % kNanosPerSecond);
  while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0 &&
         errno == EINTR) {
  }
  errno = saved;
}

// A local variable of the waiting thread, which calls Pause until its wait is over.
class BackOff {
 public:
  static constexpr int kSpins = 200;

  // `spins`: how many pauses only spin, before others yield and then sleep.
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
  // A thread with real-time priority yields to no lower one, and may keep it off the processor.
  static constexpr Nanos kNap = 50'000;

  const int spins_;
  int round_ = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BACK_OFF_H_
