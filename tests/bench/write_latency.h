// Ping-pong by RDMA writes: each side checks the last byte of its own buffer, and polls, because
// the target's engine places what arrives.
#ifndef VIADUCT_TESTS_BENCH_WRITE_LATENCY_H_
#define VIADUCT_TESTS_BENCH_WRITE_LATENCY_H_

#include <cstdint>

#include "tests/bench/clock.h"
#include "tests/bench/side.h"

namespace viaduct::bench {

// Called on both sides first: polls of an empty receive queue do nothing in VIPL.
template <typename Side>
void PrepareWrites(Side& side) {
  side.PostReceive();
}

// Rounds `from` to `from + rounds`, counted over the life of the connection: what a round writes
// follows from its number, because the first write of the other side may already have arrived.
template <typename Side>
void WritePingPong(Side& side, bool first, uint32_t bytes, const RemoteBuffer& to, uint64_t from,
                   uint64_t rounds) {
  const volatile char* flag = side.in() + bytes - 1;
  const uint64_t completed = side.completed();
  for (uint64_t i = 0; i < rounds; ++i) {
    const char value = static_cast<char>(1 + (from + i) % 100);
    const auto write = [&] {
      while (i - (side.completed() - completed) >= side.depth()) side.Poll();
      side.out()[bytes - 1] = value;
      side.PostWrite(bytes, to);
    };
    if (first) write();
    while (*flag != value) side.Poll();
    if (!first) write();
  }
  while (side.completed() - completed < rounds) side.Poll();
}

// Microseconds, one way.
template <typename Side>
double WriteMicroseconds(Side& side, bool first, uint32_t bytes, const RemoteBuffer& to,
                         uint64_t rounds) {
  const uint64_t warm = rounds / 10 + 100;
  WritePingPong(side, first, bytes, to, 0, warm);
  const double start = Seconds();
  WritePingPong(side, first, bytes, to, warm, rounds);
  return (Seconds() - start) / static_cast<double>(rounds) / 2 * 1e6;
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_WRITE_LATENCY_H_
