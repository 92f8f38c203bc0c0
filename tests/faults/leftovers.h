// What a process and its network hold, so that a test can say that nothing was left behind.
#ifndef VIADUCT_TESTS_FAULTS_LEFTOVERS_H_
#define VIADUCT_TESTS_FAULTS_LEFTOVERS_H_

#include "gtest/gtest.h"

namespace viaduct::tests {

struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int arenas = 0;  // mappings of a memfd

  friend bool operator==(const Holdings&, const Holdings&) = default;
};

// What this process holds.
Holdings HoldingsNow();

// Whether this process holds no more than `most` of each within ten seconds: the library's own
// thread releases what has ended.
::testing::AssertionResult HoldsAtMost(const Holdings& most);

// Whether no socket of Viaduct is open in this thread's network within ten seconds: TCP, except
// what the kernel keeps for a closed connection, and abstract names. Needs a network of its own.
::testing::AssertionResult NetworkIsEmpty();

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_LEFTOVERS_H_
