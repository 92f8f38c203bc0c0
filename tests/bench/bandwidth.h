// A stream of messages in one direction. The receiver gives credits, as a VIPL program must: a
// message that finds no receive would break its connection.
#ifndef VIADUCT_TESTS_BENCH_BANDWIDTH_H_
#define VIADUCT_TESTS_BENCH_BANDWIDTH_H_

#include <cstdint>

#include "tests/bench/clock.h"

namespace viaduct::bench {

// Messages that one credit stands for: half of the receives that are posted.
template <typename Side>
uint64_t CreditSize(const Side& side) {
  return side.depth() / 2;
}

// Called on both sides, before the other side may send.
template <typename Side>
void PrepareStream(Side& side) {
  for (uint32_t i = 0; i < side.depth(); ++i) side.PostReceive();
}

// `messages` is a multiple of CreditSize.
template <typename Side>
void SendStream(Side& side, uint32_t bytes, uint64_t messages) {
  const uint64_t completed = side.completed();
  const uint64_t received = side.received();
  uint64_t credits = 0;
  const auto poll = [&] {
    side.Poll();
    for (; credits < side.received() - received; ++credits) side.PostReceive();
  };
  for (uint64_t i = 0; i < messages; ++i) {
    while (i - credits * CreditSize(side) >= side.depth() ||
           i - (side.completed() - completed) >= side.depth()) {
      poll();
    }
    side.PostSend(bytes);
  }
  while (credits * CreditSize(side) < messages || side.completed() - completed < messages) poll();
}

// `taken`: receives that earlier streams have used; the first messages of this one may have come
// already.
template <typename Side>
void ReceiveStream(Side& side, uint64_t taken, uint64_t messages) {
  const uint64_t completed = side.completed();
  for (const uint64_t end = taken + messages; taken < end;) {
    side.Poll();
    while (taken < side.received() && taken < end) {
      side.PostReceive();
      if (++taken % CreditSize(side) == 0) side.PostSend(1);
    }
  }
  while (side.completed() - completed < messages / CreditSize(side)) side.Poll();
}

// Gigabytes (10^9 bytes) per second. A tenth as many messages go first to warm up.
template <typename Side>
double StreamGigabytes(Side& side, bool sender, uint32_t bytes, uint64_t messages) {
  const uint64_t warm = (messages / 10 / CreditSize(side) + 1) * CreditSize(side);
  const uint64_t timed = (messages / CreditSize(side) + 1) * CreditSize(side);
  const auto run = [&](uint64_t from, uint64_t n) {
    if (sender) {
      SendStream(side, bytes, n);
    } else {
      ReceiveStream(side, from, n);
    }
  };
  run(0, warm);
  const double start = Seconds();
  run(warm, timed);
  return static_cast<double>(bytes) * static_cast<double>(timed) / (Seconds() - start) / 1e9;
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_BANDWIDTH_H_
