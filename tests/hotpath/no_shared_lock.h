// No two endpoints share a lock, even if they have the adapter, zone, region and process in common:
// a thread that is stopped anywhere in its posts and polls stops no other thread's.
#ifndef VIADUCT_TESTS_HOTPATH_NO_SHARED_LOCK_H_
#define VIADUCT_TESTS_HOTPATH_NO_SHARED_LOCK_H_

#include "gtest/gtest.h"
#include "tests/hotpath/stopped_thread.h"

namespace viaduct::hotpath {

constexpr int kStops = 1000;

// `Program(n)` has n connections within the process; Exchange(c) sends a message over one of them
// and takes both completions.
template <typename Program>
void NobodyWaitsForAStoppedThread() {
  Program program(2);
  for (int c = 0; c < 2; ++c) program.Exchange(c);
  StoppableThread other([&] { program.Exchange(0); });
  for (int i = 0; i < kStops; ++i) {
    // Otherwise the other thread would be stopped again where it was let go.
    for (int free = i % 8; free > 0; --free) program.Exchange(1);
    other.Stop();
    program.Exchange(1);
    ASSERT_TRUE(other.LetGo()) << "at the stop number " << i;
  }
}

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_NO_SHARED_LOCK_H_
