// Time for measurements.
#ifndef VIADUCT_TESTS_BENCH_CLOCK_H_
#define VIADUCT_TESTS_BENCH_CLOCK_H_

#include <chrono>

namespace viaduct::bench {

inline double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_CLOCK_H_
