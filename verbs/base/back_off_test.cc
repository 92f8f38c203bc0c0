#include "verbs/base/back_off.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "gtest/gtest.h"
#include "verbs/base/lock.h"
#include "verbs/base/pass_lock.h"

namespace viaduct::verbs {
namespace {

// 'R' if the thread runs or is ready to run, 'S' if it sleeps.
char StateOf(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t end = line.rfind(')');
  return end != std::string::npos && end + 2 < line.size() ? line[end + 2] : '?';
}

// Holds the lock until the thread in `wait` is seen asleep. A thread that only yields never is.
template <typename Lock, typename Wait>
void ExpectSleeps(Lock& lock, const Wait& wait) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  lock.Lock();
  std::atomic<long> waiter{0};
  std::thread thread([&] {
    waiter = syscall(SYS_gettid);
    wait();
  });
  while (waiter == 0) std::this_thread::yield();
  while (StateOf(waiter) != 'S') {
  }
  lock.Unlock();
  thread.join();
}

TEST(BackOff, WhoWaitsForASpinLockSleepsInTheEnd) {
  SpinLock lock;
  ExpectSleeps(lock, [&] { const SpinLockHolder holder(&lock); });
}

TEST(BackOff, WhoWaitsForAPassLockSleepsInTheEnd) {
  PassLock lock;
  ExpectSleeps(lock, [&] { const PassLockHolder holder(&lock); });
}

TEST(BackOff, WhoWaitsForItsHolderToPassSleepsInTheEnd) {
  PassLock lock;
  ExpectSleeps(lock, [&] { lock.Pass(); });
}

TEST(BackOff, LeavesErrnoAlone) {
  errno = E2BIG;
  BackOff back_off(/*spins=*/0);
  for (int i = 0; i < 110; ++i) back_off.Pause();
  EXPECT_EQ(errno, E2BIG);
}

// More often than the kernel's slack allows a sleep to end.
TEST(NapTest, LastsAndEndsAlthoughSignalsCome) {
  constexpr Nanos kNap = 20'000'000;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 20}, {0, 20}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  Nap(kNap);
  const auto end = std::chrono::steady_clock::now();
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GE(std::chrono::nanoseconds(end - begin).count(), kNap);
}

}  // namespace
}  // namespace viaduct::verbs
