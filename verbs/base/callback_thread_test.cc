#include "verbs/base/callback_thread.h"

#include <signal.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(CallbackThreadTest, RunsInOrderOnAThreadOfItsOwn) {
  std::vector<int> order;
  std::promise<std::thread::id> ran;
  for (int i = 0; i < 100; ++i) PostCallback([&order, i] { order.push_back(i); });
  PostCallback([&] { ran.set_value(std::this_thread::get_id()); });
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(CallbackThreadTest, ACallbackMayPost) {
  std::promise<void> ran;
  PostCallback([&] { PostCallback([&] { ran.set_value(); }); });
  ran.get_future().get();
}

TEST(CallbackThreadTest, SignalsAreBlockedThere) {
  std::promise<bool> blocked;
  PostCallback([&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked.set_value(sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGALRM) == 1);
  });
  EXPECT_TRUE(blocked.get_future().get());
}

// In a child, since exit() ends the process: it returns although a callback never does, and what
// was posted behind is not run.
TEST(CallbackThreadDeathTest, ExitStopsCallbacks) {
  EXPECT_EXIT(
      {
        StopCallbacksAtExit();
        std::promise<void> running;
        std::promise<void> never;
        PostCallback([&] {
          running.set_value();
          never.get_future().get();
        });
        PostCallback([] { _exit(9); });
        running.get_future().get();
        exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace viaduct::verbs
