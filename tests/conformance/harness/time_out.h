// A time-out that must have passed, and over the simulation exactly.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_TIME_OUT_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_TIME_OUT_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {

// Begins when it is constructed, and must have passed when it is destroyed. Over sim, where it
// costs no time, it may be as long as the face allows. In nanoseconds.
class TimeOut {
 public:
  TimeOut(int64_t over_sim, int64_t elsewhere) : length_(Wire() == "sim" ? over_sim : elsewhere) {}
  ~TimeOut() {
    const int64_t passed = Now() - begin_;
    EXPECT_GE(passed, length_);
    EXPECT_TRUE(Wire() != "sim" || passed == length_) << passed << " instead of " << length_;
  }
  TimeOut(const TimeOut&) = delete;
  TimeOut& operator=(const TimeOut&) = delete;

  int64_t length() const { return length_; }

 private:
  const int64_t length_;
  const int64_t begin_ = Now();
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_TIME_OUT_H_
