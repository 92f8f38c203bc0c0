#include "verbs/base/errand.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/prepared_task.h"
#include "verbs/base/testing_messenger.h"

namespace viaduct::verbs {
namespace {

ControlThread& Loop() { return **ControlThread::Get(); }

using LoopMessenger =
    Messenger<Errand, [](auto& errand, auto object) { errand.Post(Loop(), object); }>;

TEST(ErrandTest, ComesOnceForPostsInARow) {
  const auto messenger = std::make_shared<LoopMessenger>();
  Loop().RunAndWait([&] {
    for (int i = 0; i < 5; ++i) messenger->Send();
    EXPECT_EQ(messenger->calls(), 0);
  });
  Loop().Drain();
  EXPECT_EQ(messenger->calls(), 1);
  EXPECT_EQ(messenger->heard(), 5);
}

TEST(ErrandTest, KeepsItsObjectUntilTheCallAndNoLonger) {
  std::atomic<bool> gone{false};
  Loop().RunAndWait([&] {
    std::make_shared<LoopMessenger>(&gone)->Send();
    EXPECT_FALSE(gone);
  });
  Loop().Drain();
  EXPECT_TRUE(gone);
}

TEST(ErrandTest, KeepsItsPlaceAmongTheTasks) {
  const auto messenger = std::make_shared<LoopMessenger>();
  int before = -1, after = -1;
  Loop().RunAndWait([&] {
    Loop().Post([&] { before = messenger->calls(); });
    messenger->Send();
    Loop().Post([&] { after = messenger->calls(); });
  });
  Loop().Drain();
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 1);
}

TEST(ErrandTest, NothingThatWasStoredBeforeAPostIsMissed) {
  constexpr int kThreads = 3, kEach = 20000;
  const auto messenger = std::make_shared<LoopMessenger>();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) messenger->Send();
    });
  }
  for (std::thread& thread : threads) thread.join();
  Loop().Drain();
  EXPECT_EQ(messenger->heard(), kThreads * kEach);
}

class Last final : public PreparedTask {
 public:
  Last(std::vector<int>* order, int number) : order_(order), number_(number) {}
  void Run() override {
    order_->push_back(number_);
    if (number_ < 3) Loop().Post(*this);  // it may be posted from its own run
    number_ += 10;
  }

 private:
  std::vector<int>* const order_;
  int number_;
};

TEST(PreparedTaskTest, RunsInItsTurnAndMayBePostedAnewInIt) {
  std::vector<int> order;
  Last first(&order, 1), second(&order, 5);
  Loop().RunAndWait([&] {
    EXPECT_TRUE(Loop().Post(first));
    EXPECT_TRUE(Loop().Post(second));
  });
  Loop().Drain();
  Loop().Drain();
  EXPECT_EQ(order, (std::vector<int>{1, 5, 11}));
}

}  // namespace
}  // namespace viaduct::verbs
