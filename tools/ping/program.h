// What a program that measures consists of besides its interface: how it ends, what time it is, and
// how long it is patient.
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

// Prints what `work` returns. The exit status: 1, with the reason on standard error, if it throws
// or the output cannot be written.
int Run(const char* program, const std::function<std::string()>& work);

inline constexpr uint64_t kSecond = 1'000'000'000;
uint64_t Now();  // ns, of a clock that never jumps

// Of a loop that looks for something without a pause. It reads the clock at every 65536th look, so
// that looking costs nothing.
class Patience {
 public:
  explicit Patience(int seconds) : seconds_(seconds) {}

  // `come` counts what has come, each time from the same start. Throws Failure when nothing more
  // has come for so long.
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

// How long a measurement goes on, which begins when this is made: for `count` messages, or, where
// that is 0, for `seconds`.
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
