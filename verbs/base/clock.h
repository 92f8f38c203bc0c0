// Time as the engine sees it: one monotonic clock, absolute deadlines.
//
// Microseconds (DAT) and milliseconds (VIPL) exist only at the faces; everything below counts
// nanoseconds of a Clock that the executor provides, so that a simulation can replace it.
#ifndef VIADUCT_VERBS_BASE_CLOCK_H_
#define VIADUCT_VERBS_BASE_CLOCK_H_

#include <time.h>

#include <cstdint>
#include <limits>

namespace viaduct::verbs {

using Nanos = int64_t;
inline constexpr Nanos kNanosPerMicro = 1'000;
inline constexpr Nanos kNanosPerMilli = 1'000'000;
inline constexpr Nanos kNanosPerSecond = 1'000'000'000;

// CLOCK_MONOTONIC, which everything that runs on real threads uses.
inline Nanos MonotonicNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back. Any thread.
  virtual Nanos Now() const = 0;
};

// The end of one operation, fixed when the operation begins: a wait never restarts its time-out.
class Deadline {
 public:
  static constexpr Deadline Infinite() { return Deadline(std::numeric_limits<Nanos>::max()); }
  static constexpr Deadline At(Nanos at) { return Deadline(at); }
  // Saturates: a time-out too large to represent is infinite.
  static Deadline After(const Clock& clock, Nanos duration) {
    Nanos now = clock.Now();
    return duration > std::numeric_limits<Nanos>::max() - now ? Infinite()
                                                              : Deadline(now + duration);
  }

  constexpr bool infinite() const { return at_ == std::numeric_limits<Nanos>::max(); }
  constexpr Nanos at() const { return at_; }
  bool Passed(const Clock& clock) const { return !infinite() && clock.Now() >= at_; }

 private:
  explicit constexpr Deadline(Nanos at) : at_(at) {}
  Nanos at_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CLOCK_H_
