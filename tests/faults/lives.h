// Lives of a program, in each of which another system call fails, or is the last; its peer is one
// process for all.
#ifndef VIADUCT_TESTS_FAULTS_LIVES_H_
#define VIADUCT_TESTS_FAULTS_LIVES_H_

#include "gtest/gtest.h"
#include "tests/faults/leftovers.h"
#include "tests/faults/refused.h"

namespace viaduct::tests {

// What a program says to its peer. Who hears the last of them ends.
constexpr char kGoOn = 1, kStop = 2;
// How long it waits for a connection: what has to come comes within kLong, and a failure is
// recorded if it does not.
enum class Patience { kOneAttempt, kLong, kForever };

// What becomes of the lives, until the last of them, with `last`, tells the survivor to end, which
// it then does without failures of its own.
using Ordeal = void (*)(void (*survive)(), void (*live)(bool last));

// Each system call of failing_calls.h fails in a life of its own, the first of its kind, the next,
// and so on. No life hangs, crashes, keeps anything or is refused without a failure.
void FailEachCall(void (*survive)(), void (*live)(bool last));
// Each system call ends a life, by kill -9 in its place, and the next life is a whole one. Every
// seventh call, from a random one on; each with VIADUCT_LONG in the environment.
void DieAtEachCall(void (*survive)(), void (*live)(bool last));

// `Program` opens and closes an adapter; Serve and Call make a connection, say a word, and return
// the one that they have heard when the connection has ended. Each throws Refused.
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
