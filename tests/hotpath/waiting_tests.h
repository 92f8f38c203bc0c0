// A wait spins for a moment and then sleeps; a post makes a system call to wake a sleeper.
#ifndef VIADUCT_TESTS_HOTPATH_WAITING_TESTS_H_
#define VIADUCT_TESTS_HOTPATH_WAITING_TESTS_H_

#include <gtest/gtest.h>

#include "tests/conformance/harness/process_facts.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/hotpath/pair_of_sides.h"
#include "tests/hotpath/system_calls.h"

namespace viaduct::hotpath {

template <typename Side>
class WaitingTest : public ::testing::Test {};
TYPED_TEST_SUITE_P(WaitingTest);

TYPED_TEST_P(WaitingTest, AWaiterUsesNoProcessor) {
  RunConnected<TypeParam>({}, [](TypeParam& side, Peer& peer, bool) {
    side.PostReceive();
    Exchange(peer, true);
    const double wall = tests::SecondsOf(CLOCK_MONOTONIC);
    const double thread = tests::SecondsOf(CLOCK_THREAD_CPUTIME_ID);
    const double process = tests::SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
    EXPECT_FALSE(side.WaitReceive(1000));
    const double waited = tests::SecondsOf(CLOCK_MONOTONIC) - wall;
    EXPECT_LT(tests::SecondsOf(CLOCK_THREAD_CPUTIME_ID) - thread, waited / 10);
    // The engine's own thread sleeps too.
    EXPECT_LT(tests::SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - process, waited / 10);
    Exchange(peer, true);
  });
}

TYPED_TEST_P(WaitingTest, WhoPostsWakesASleeper) {
  RunConnected<TypeParam>({}, [](TypeParam& side, Peer& peer, bool active) {
    if (!active) {
      side.PostReceive();
      peer.Tell("waiting");
      EXPECT_TRUE(side.WaitReceive(60000));
      peer.Tell("received");
      return;
    }
    peer.Await("waiting");
    tests::AwaitAsleep(peer.pid(), peer.pid());
    SystemCallCounter calls;
    calls.Start();
    side.PostSend(8);
    const int counted = calls.Stop();
    EXPECT_GE(counted, calls.supported() ? 1 : 0);
    peer.Await("received");
  });
}

REGISTER_TYPED_TEST_SUITE_P(WaitingTest, AWaiterUsesNoProcessor, WhoPostsWakesASleeper);

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_WAITING_TESTS_H_
