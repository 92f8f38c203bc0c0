#include "verbs/base/callback_thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(CallbackThreadTest, RunsInOrderOnAThreadOfItsOwn) {
  std::vector<int> order;
  std::promise<std::thread::id> ran;
  for (int i = 0; i < 100; ++i) PostCallback(nullptr, [&order, i] { order.push_back(i); });
  PostCallback(nullptr, [&] { ran.set_value(std::this_thread::get_id()); });
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(CallbackThreadTest, ACallbackMayPost) {
  std::promise<void> ran;
  PostCallback(nullptr, [&] { PostCallback(nullptr, [&] { ran.set_value(); }); });
  ran.get_future().get();
}

TEST(CallbackThreadTest, SignalsAreBlockedThere) {
  std::promise<bool> blocked;
  PostCallback(nullptr, [&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked.set_value(sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGALRM) == 1);
  });
  EXPECT_TRUE(blocked.get_future().get());
}

// A callback that has begun, and does not return before LetGo().
class SlowCallback {
 public:
  explicit SlowCallback(const void* about) {
    PostCallback(about, [this] {
      begun_.set_value();
      let_go_.get_future().get();
      returned_ = true;
    });
    begun_.get_future().get();
  }
  void LetGo() { let_go_.set_value(); }
  bool returned() const { return returned_; }

 private:
  std::promise<void> begun_;
  std::promise<void> let_go_;
  std::atomic<bool> returned_{false};
};

TEST(CallbackThreadTest, WhoAwaitsACallbackFindsItReturned) {
  const int about = 0, another = 0;
  SlowCallback slow(&about);
  AwaitCallback(&another);
  EXPECT_FALSE(slow.returned());
  std::thread awaiting([&] {
    AwaitCallback(&about);
    EXPECT_TRUE(slow.returned());
  });
  slow.LetGo();
  awaiting.join();
  AwaitCallback(&about);
}

TEST(CallbackThreadTest, ACallbackThatWaitsForWhoAwaitsItIsLeft) {
  const int about = 0;
  SlowCallback slow(&about);
  AwaitCallback(&about, std::chrono::milliseconds(1));
  EXPECT_FALSE(slow.returned());
  AwaitCallback(&about, std::chrono::hours(1));  // does not wait a second time
  std::promise<void> ran;
  PostCallback(nullptr, [&] { ran.set_value(); });
  slow.LetGo();
  ran.get_future().get();
  EXPECT_TRUE(slow.returned());
}

TEST(CallbackThreadTest, ACallbackDoesNotAwaitItself) {
  const int about = 0;
  std::promise<void> ran;
  PostCallback(&about, [&] {
    AwaitCallback(&about);
    ran.set_value();
  });
  ran.get_future().get();
}

TEST(CallbackThreadTest, ACallbackThatEndsItsThreadEndsNoOther) {
  const int about = 0;
  std::promise<void> posted, ran;
  PostCallback(&about, [&] {
    posted.get_future().get();
    pthread_exit(nullptr);
  });
  PostCallback(&about, [&] { ran.set_value(); });
  posted.set_value();
  ran.get_future().get();
  AwaitCallback(&about);
}

// In a child, since exit() ends the process: it does so although a callback never returns, and
// callbacks that were posted after that one do not run.
TEST(CallbackThreadDeathTest, ExitStopsCallbacks) {
  EXPECT_EXIT(
      {
        StopCallbacksAtExit();
        std::promise<void> running;
        std::promise<void> never;
        PostCallback(nullptr, [&] {
          running.set_value();
          never.get_future().get();
        });
        PostCallback(nullptr, [] { _exit(9); });
        running.get_future().get();
        exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace viaduct::verbs
