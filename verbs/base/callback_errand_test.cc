#include "verbs/base/callback_errand.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/testing_messenger.h"

namespace viaduct::verbs {
namespace {

void AwaitCallbacks() {
  std::promise<void> ran;
  PostCallback(nullptr, [&] { ran.set_value(); });
  ran.get_future().get();
}

// Occupies the callback thread for as long as it lives.
class Blocker {
 public:
  Blocker() {
    PostCallback(nullptr, [this] {
      begun_.set_value();
      let_go_.get_future().get();
    });
    begun_.get_future().get();
  }
  ~Blocker() {
    let_go_.set_value();
    AwaitCallbacks();  // its own included
  }

 private:
  std::promise<void> begun_;
  std::promise<void> let_go_;
};

using CallbackMessenger =
    Messenger<CallbackErrand, [](auto& errand, auto object) { EXPECT_TRUE(errand.Post(object)); }>;

TEST(CallbackErrandTest, ComesOnceForPostsInARow) {
  const auto messenger = std::make_shared<CallbackMessenger>();
  {
    const Blocker blocker;
    for (int i = 0; i < 5; ++i) messenger->Send();
    EXPECT_EQ(messenger->calls(), 0);
  }
  EXPECT_EQ(messenger->calls(), 1);
  EXPECT_EQ(messenger->heard(), 5);
}

TEST(CallbackErrandTest, KeepsItsObjectUntilTheCallAndNoLonger) {
  std::atomic<bool> gone{false};
  {
    const Blocker blocker;
    std::make_shared<CallbackMessenger>(&gone)->Send();
    EXPECT_FALSE(gone);
  }
  EXPECT_TRUE(gone);
}

TEST(CallbackErrandTest, NothingThatWasStoredBeforeAPostIsMissed) {
  constexpr int kThreads = 3, kEach = 20000;
  const auto messenger = std::make_shared<CallbackMessenger>();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) messenger->Send();
    });
  }
  for (std::thread& thread : threads) thread.join();
  AwaitCallbacks();
  EXPECT_EQ(messenger->heard(), kThreads * kEach);
}

class Slow : public std::enable_shared_from_this<Slow> {
 public:
  void Begin() { EXPECT_TRUE(errand_.Post(shared_from_this())); }
  void AwaitBegun() { begun_.get_future().get(); }
  void LetGo() { let_go_.set_value(); }
  bool returned() const { return returned_; }

 private:
  void Call() {
    begun_.set_value();
    let_go_.get_future().get();
    returned_ = true;
  }

  std::promise<void> begun_;
  std::promise<void> let_go_;
  std::atomic<bool> returned_{false};
  CallbackErrand<&Slow::Call, std::shared_ptr<Slow>> errand_;
};

TEST(CallbackErrandTest, IsAboutItsObject) {
  const auto slow = std::make_shared<Slow>();
  slow->Begin();
  slow->AwaitBegun();
  AwaitCallback(slow.get(), std::chrono::milliseconds(1));
  EXPECT_FALSE(slow->returned());
  const int another = 0;
  AwaitCallback(&another);
  EXPECT_FALSE(slow->returned());
  slow->LetGo();
  AwaitCallbacks();
  EXPECT_TRUE(slow->returned());
}

std::promise<void> exiting;
std::atomic<bool> let_go{false};

// Must never be called.
class Late : public std::enable_shared_from_this<Late> {
 public:
  ~Late() { let_go = true; }
  void Post() { EXPECT_TRUE(errand_.Post(shared_from_this())); }

 private:
  void Call() { _exit(9); }
  CallbackErrand<&Late::Call, std::shared_ptr<Late>> errand_;
};

// In a child, since exit() ends the process.
TEST(CallbackErrandDeathTest, ExitLetsTheObjectGoWithoutACall) {
  EXPECT_EXIT(
      {
        // Registered before StopCallbacksAtExit, so it runs after that handler.
        std::atexit([] {
          exiting.set_value();
          while (!let_go) std::this_thread::yield();
        });
        StopCallbacksAtExit();
        PostCallback(nullptr, [] { exiting.get_future().get(); });
        std::make_shared<Late>()->Post();
        exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace viaduct::verbs
