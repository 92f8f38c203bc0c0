#include "verbs/base/futex.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(Parker, KeepsOneUnpark) {
  FutexParker parker;
  parker.Unpark();
  parker.Unpark();
  EXPECT_EQ(parker.Park(Deadline::Infinite()), ParkResult::kUnparked);
  EXPECT_EQ(parker.Park(Deadline::At(0)), ParkResult::kTimedOut);
}

TEST(Parker, TimesOutNotBeforeTheDeadline) {
  FutexParker parker;
  const Nanos at = MonotonicNow() + 5'000'000;
  EXPECT_EQ(parker.Park(Deadline::At(at)), ParkResult::kTimedOut);
  EXPECT_GE(MonotonicNow(), at);
}

TEST(Parker, ATimeOutLeavesNoTraces) {
  FutexParker parker;
  EXPECT_EQ(parker.Park(Deadline::At(0)), ParkResult::kTimedOut);
  parker.Unpark();
  EXPECT_EQ(parker.Park(Deadline::Infinite()), ParkResult::kUnparked);
}

TEST(Parker, TwoThreadsTakeTurns) {
  constexpr int kTurns = 2000;
  FutexParker here, there;
  int turns = 0;  // only the parkers order its accesses
  std::thread other([&] {
    for (int i = 0; i < kTurns; ++i) {
      while (there.Park(Deadline::Infinite()) != ParkResult::kUnparked) {
      }
      ++turns;
      here.Unpark();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    ++turns;
    there.Unpark();
    while (here.Park(Deadline::Infinite()) != ParkResult::kUnparked) {
    }
  }
  other.join();
  EXPECT_EQ(turns, 2 * kTurns);
}

// Also with SA_RESTART, where the kernel would go on sleeping if it could.
TEST(Parker, ASignalHandlerInterrupts) {
  for (int flags : {0, SA_RESTART}) {
    struct sigaction action = {}, old;
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
    FutexParker parker;
    std::atomic<bool> interrupted{false};
    std::thread sleeper([&] {
      EXPECT_EQ(parker.Park(Deadline::Infinite()), ParkResult::kInterrupted);
      interrupted.store(true);
    });
    // The first signals may come before it sleeps.
    while (!interrupted.load()) {
      pthread_kill(sleeper.native_handle(), SIGUSR1);
      std::this_thread::yield();
    }
    sleeper.join();
    sigaction(SIGUSR1, &old, nullptr);
  }
}

TEST(Parker, CancellationWaitsForTheEndOfThePark) {
  struct Shared {
    FutexParker parker;
    std::atomic<bool> parked{false};
    std::atomic<bool> returned{false};
  } shared;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto* shared = static_cast<Shared*>(argument);
                  int old;
                  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
                  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
                  shared->parked.store(true);
                  while (shared->parker.Park(Deadline::Infinite()) != ParkResult::kUnparked) {
                  }
                  shared->returned.store(true);
                  return nullptr;
                },
                &shared),
            0);
  while (!shared.parked.load()) std::this_thread::yield();
  pthread_cancel(thread);
  shared.parker.Unpark();
  pthread_join(thread, nullptr);
  EXPECT_TRUE(shared.returned.load());
}

TEST(Futex, ReturnsAtOnceWhenTheWordDiffers) {
  std::atomic<uint32_t> word{1};
  EXPECT_EQ(FutexWait(word, 2, Deadline::Infinite()), FutexResult::kWoken);
  EXPECT_EQ(FutexWait(word, 1, Deadline::At(0)), FutexResult::kTimedOut);
}

}  // namespace
}  // namespace viaduct::verbs
