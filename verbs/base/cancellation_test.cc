#include "verbs/base/cancellation.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

constinit std::atomic<uint32_t> word{0};

void SleepOn(uint32_t seen, long nanoseconds) {
  const timespec timeout = {0, nanoseconds};
  SleepIn(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, seen,
          reinterpret_cast<long>(&timeout), 0, 0);
}

class CancellationTest : public testing::TestWithParam<int> {
 protected:
  void* Cancelled(void* (*body)(void*)) {
    pthread_t thread;
    type_ = GetParam();
    EXPECT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
    EXPECT_EQ(pthread_cancel(thread), 0);
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread, &result), 0);
    return result;
  }
  static void SetType() { pthread_setcanceltype(type_, nullptr); }

 private:
  static inline int type_;
};

// The request to cancel comes before the thread sleeps, or while it sleeps.
TEST_P(CancellationTest, WhoIsCancelledAsleepSaysSo) {
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(Cancelled([](void*) -> void* {
                SetType();
                const CancellationAsleep only_there;
                for (;;) SleepOn(word, 50'000'000);
              }),
              PTHREAD_CANCELED);
  }
}

// How many threads were cancelled where that is disabled, after they slept where it is enabled.
constinit std::atomic<int> struck{0};
thread_local bool forbidden = false;
struct Frame {
  ~Frame() {
    if (forbidden) ++struck;
  }
};

TEST_P(CancellationTest, NobodyIsCancelledWhereItIsDisabled) {
  std::atomic<bool> stop{false};
  std::thread waker([&] {
    while (!stop) {
      ++word;
      syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 100, nullptr, nullptr, 0);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(Cancelled([](void*) -> void* {
                SetType();
                const Frame frame;
                for (;;) {
                  const CancellationAsleep there;
                  SleepOn(word, 50'000'000);
                  const CancellationDisabled not_even_there;
                  forbidden = true;
                  for (int k = 0; k < 2; ++k) SleepOn(word, 30'000);
                  forbidden = false;
                }
              }),
              PTHREAD_CANCELED);
  }
  stop = true;
  waker.join();
  EXPECT_EQ(struck, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, CancellationTest,
                         testing::Values(PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS));

}  // namespace
}  // namespace viaduct::verbs
