// Connections made one after the other, all of them kept.
#ifndef VIADUCT_TESTS_BENCH_CONNECTION_RATE_H_
#define VIADUCT_TESTS_BENCH_CONNECTION_RATE_H_

#include <cstdint>

#include "tests/bench/clock.h"

namespace viaduct::bench {

// The time to make the endpoints counts too. The sides already have one connection.
template <typename Side>
double ConnectionsPerSecond(Side& side, bool active, uint16_t port, uint64_t count) {
  const double start = Seconds();
  for (uint64_t i = 0; i < count; ++i) {
    if (active) {
      side.Connect(port);
    } else {
      side.Accept();
    }
  }
  return static_cast<double>(count) / (Seconds() - start);
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_CONNECTION_RATE_H_
