// Ping-pong: one message there, one back, and so on.
#ifndef VIADUCT_TESTS_BENCH_LATENCY_H_
#define VIADUCT_TESTS_BENCH_LATENCY_H_

#include <cstdint>

#include "tests/bench/clock.h"

namespace viaduct::bench {

// Called before the other side may send.
template <typename Side>
void PrepareReceives(Side& side) {
  for (uint32_t i = 0; i < side.depth() / 2; ++i) side.PostReceive();
}

// `first`: sends the first message. The answer leaves before the receive is posted again.
template <typename Side>
void PingPong(Side& side, bool first, uint32_t bytes, uint64_t rounds) {
  const uint64_t end = side.received() + rounds;
  while (side.received() < end) {
    const uint64_t next = side.received() + 1;
    if (first) side.PostSend(bytes);
    while (side.received() < next) side.Poll();
    if (!first) side.PostSend(bytes);
    side.PostReceive();
  }
}

// Microseconds, one way. A tenth as many rounds, and 100 more, go first to warm up.
template <typename Side>
double PingPongMicroseconds(Side& side, bool first, uint32_t bytes, uint64_t rounds) {
  PingPong(side, first, bytes, rounds / 10 + 100);
  const double start = Seconds();
  PingPong(side, first, bytes, rounds);
  return (Seconds() - start) / static_cast<double>(rounds) / 2 * 1e6;
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_LATENCY_H_
