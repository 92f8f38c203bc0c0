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

// Of this process.
Holdings HoldingsNow();

// This process comes to hold no more than `most` of each, within ten seconds: what has ended is
// let go of by the library's own thread.
::testing::AssertionResult HoldsAtMost(const Holdings& most);

// No socket of Viaduct is open in this thread's network, within ten seconds: TCP beyond what the
// kernel itself keeps for a closed connection, and abstract names. Asks for a network of its own.
::testing::AssertionResult NetworkIsEmpty();

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_LEFTOVERS_H_
