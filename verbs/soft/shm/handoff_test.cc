// A request that listeners hand off to one another.
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/device.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

constexpr uint8_t kNote[] = {1};

// Takes whatever is handed to it, and keeps the request.
class Keeper final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    std::lock_guard lock(mutex_);
    request_ = std::move(request);
    changed_.notify_all();
  }
  bool TakesHandOff(absl::Span<const uint8_t>) override { return true; }
  // Null if none has come for long.
  std::unique_ptr<IncomingConnection> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return request_ != nullptr; });
    return std::move(request_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<IncomingConnection> request_;
};

class HandOffTest : public testing::Test {
 protected:
  // Hands the request of `from_` off so many times, to and fro between the listeners.
  void HandOn(int times) {
    DialForTest(from_.pair(), ports_[0]);
    for (int i = 1; i <= times; ++i) {
      const auto request = keeper_.Next();
      ASSERT_NE(request, nullptr) << i;
      ASSERT_TRUE(request->HandOff(ports_[i % 2], kNote, Deadline::Infinite()).ok()) << i;
    }
  }

  const std::unique_ptr<Context> context_ = OpenForTest();
  TestEnd from_{*context_};
  TestEnd to_{*context_};
  Keeper keeper_;
  const std::unique_ptr<Listener> listeners_[2] = {*context_->Listen(0, &keeper_),
                                                   *context_->Listen(0, &keeper_)};
  const uint16_t ports_[2] = {listeners_[0]->port(), listeners_[1]->port()};
};

TEST_F(HandOffTest, ARequestGoesAllTheWayAlongALine) {
  ASSERT_NO_FATAL_FAILURE(HandOn(kMostHandOffs));
  const auto request = keeper_.Next();
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(to_.pair(), {}).ok());
  from_.Await(from_.connected);
}

TEST_F(HandOffTest, NoRequestGoesRoundForEver) {
  ASSERT_NO_FATAL_FAILURE(HandOn(kMostHandOffs + 1));
  from_.Await(from_.failed);
  EXPECT_EQ(from_.outcome, ConnectOutcome::kRefused);
}

}  // namespace
}  // namespace viaduct::verbs::shm
