// What a program that measures needs besides its interface: how it ends, a clock, and its patience.
#ifndef VIADUCT_TOOLS_PING_PROGRAM_H_
#define VIADUCT_TOOLS_PING_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace viaduct::ping {

// Something went wrong; the text says what.
struct Failure : std::runtime_error {
  using runtime_error::runtime_error;
};
// The other end closed the connection.
struct Ended {};

// Prints what `work` returns. Returns the exit status: 1, with the reason on standard error, if
// `work` throws or the output cannot be written.
int Run(const char* program, const std::function<std::string()>& work);

inline constexpr uint64_t kSecond = 1'000'000'000;
uint64_t Now();  // ns, of a clock that never jumps

// The time-out of a loop that polls without a pause. It reads the clock only at every 65536th call,
// so that polling costs nothing.
class Patience {
 public:
  explicit Patience(int seconds) : seconds_(seconds) {}

  // `come` counts everything that has come, always from the same start. Throws Failure if nothing
  // more has come for `seconds`.
  void Look(uint64_t come) {
    if (++looks_ == 0) ReadClock(come);
  }

 private:
  void ReadClock(uint64_t come);

  const int seconds_;
  uint16_t looks_ = 0;
  uint64_t come_ = 0;
  uint64_t begin_ = 0;  // of the silence
};

// How long a measurement goes on, which begins when this object is made: for `count` messages or,
// if that is 0, for `seconds`.
class Stopwatch {
 public:
  Stopwatch(uint64_t count, double seconds)
      : count_(count), nanoseconds_(seconds * 1e9), begin_(Now()) {}

  uint64_t begin() const { return begin_; }
  // Is it over after so many messages?
  bool Over(uint64_t messages) const { return Over(messages, count_ != 0 ? begin_ : Now()); }
  bool Over(uint64_t messages, uint64_t now) const {
    if (count_ != 0) return messages >= count_;
    return static_cast<double>(now - begin_) >= nanoseconds_;
  }

 private:
  const uint64_t count_;
  const double nanoseconds_;
  const uint64_t begin_;
};

}  // namespace viaduct::ping

#endif  // VIADUCT_TOOLS_PING_PROGRAM_H_
