// Lives of a program, in each of which another system call fails, or is the last; one process is
// the peer of all of them.
#ifndef VIADUCT_TESTS_FAULTS_LIVES_H_
#define VIADUCT_TESTS_FAULTS_LIVES_H_

#include "gtest/gtest.h"
#include "tests/faults/leftovers.h"
#include "tests/faults/refused.h"

namespace viaduct::tests {

// What a program sends to its peer, which ends when it receives kStop.
constexpr char kGoOn = 1, kStop = 2;
// How long a program waits for a connection: what has to come must come within kLong, or a failure
// is recorded.
enum class Patience { kOneAttempt, kLong, kForever };

// What happens to the lives, until the last one, with `last`, tells the survivor to end, which then
// has to end without failures of its own.
using Ordeal = void (*)(void (*survive)(), void (*live)(bool last));

// Each system call of failing_calls.h fails in a life of its own, the first of its kind, the next,
// and so on. No life may hang, crash, leave anything behind, or be refused without a failure.
void FailEachCall(void (*survive)(), void (*live)(bool last));
// A system call ends a life, by kill -9 in its place, and the next life is a whole one: for every
// seventh call, from a random one on, or for each call with VIADUCT_LONG in the environment.
void DieAtEachCall(void (*survive)(), void (*live)(bool last));

// `Program` opens and closes an adapter; Serve and Call make a connection, send a byte, and return
// the byte that they have received once the connection has ended. Each may throw Refused.
template <typename Program>
void TryEachCallOfAClient(Ordeal ordeal) {
  ordeal(
      [] {
        Program program;
        EXPECT_EQ(program.Serve(kGoOn, Patience::kLong), kGoOn);
        const Holdings before = HoldingsNow();
        for (char heard = kGoOn; heard != kStop;) {
          try {
            heard = program.Serve(kGoOn, Patience::kForever);
          } catch (const Refused&) {
          }
        }
        EXPECT_TRUE(HoldsAtMost(before));
      },
      [](bool last) { Program().Call(last ? kStop : kGoOn, Patience::kLong); });
}
template <typename Program>
void TryEachCallOfAServer(Ordeal ordeal) {
  ordeal(
      [] {
        Program program;
        for (char heard = kGoOn; heard != kStop;) {
          try {
            heard = program.Call(kGoOn, Patience::kOneAttempt);
          } catch (const Refused&) {
          }
        }
      },
      [](bool last) { Program().Serve(last ? kStop : kGoOn, Patience::kLong); });
}

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_LIVES_H_
