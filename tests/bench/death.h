// How soon the death of one process becomes an event in the other.
#ifndef VIADUCT_TESTS_BENCH_DEATH_H_
#define VIADUCT_TESTS_BENCH_DEATH_H_

#include "tests/bench/clock.h"
#include "tests/bench/side.h"
#include "tests/bench/two_processes.h"

namespace viaduct::bench {

// Milliseconds from kill -9 of the child until the parent's receive has come back and its waiter is
// awake. The child's result means nothing.
template <typename Side>
double DeathMilliseconds(TwoProcesses& us, Side& side) {
  constexpr int kPatience = 10000;
  if (!us.parent()) {
    side.WaitReceive(kPatience);
    return 0;
  }
  const double start = Seconds();
  us.KillChild();
  if (!side.WaitBroken(kPatience)) Die("the peer's death", kPatience);
  return (Seconds() - start) * 1e3;
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_DEATH_H_
