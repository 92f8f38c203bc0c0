#include "verbs/soft/receive_line.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"

namespace viaduct::verbs {
namespace {

using Waiter = ReceiveLine::Waiter;

constexpr Nanos kLater = ReceiveLine::kPatience;

// A queue of receives that are only counted.
class ReceiveLineTest : public testing::Test {
 protected:
  ~ReceiveLineTest() override {
    for (Waiter& waiter : waiters_) line_.Leave(waiter);
    EXPECT_TRUE(line_.empty());
  }
  Waiter& at(int i) { return waiters_[i]; }
  bool Take(int i) {
    const bool taken = line_.Take(at(i), available_);
    if (taken) {
      --available_;
    } else {
      line_.Enter(at(i));
    }
    return taken;
  }
  // Every waiter finds nothing.
  void AllWait() {
    for (int i = 0; i < kWaiters; ++i) EXPECT_FALSE(Take(i));
  }
  Waiter* Wake(Nanos now = 0) { return line_.WakeNext(available_, now); }
  void Post(int receives) { available_ += receives; }

  static constexpr int kWaiters = 4;
  ReceiveLine line_;
  Waiter waiters_[kWaiters];
  uint32_t available_ = 0;
};

TEST_F(ReceiveLineTest, WhoComesTakesWhatIsThere) {
  EXPECT_TRUE(line_.empty());
  Post(1);
  EXPECT_EQ(Wake(), nullptr);
  EXPECT_TRUE(Take(0));
  EXPECT_TRUE(line_.empty());
  EXPECT_FALSE(Take(0));
  EXPECT_FALSE(line_.empty());
}

TEST_F(ReceiveLineTest, TheOldestIsWoken) {
  AllWait();
  AllWait();  // a waiter that asks again keeps its place
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kWaiters; ++i) {
      EXPECT_EQ(Wake(), nullptr) << "there is nothing";
      Post(1);
      ASSERT_EQ(Wake(), &at(i));
      EXPECT_TRUE(Take(i));
      EXPECT_FALSE(Take(i)) << "the next one is not for it";
    }
  }
}

TEST_F(ReceiveLineTest, AsManyAreWokenAsThereAreReceives) {
  AllWait();
  Post(3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Wake(), &at(i));
  EXPECT_EQ(Wake(), nullptr);
  for (int i = 2; i >= 0; --i) EXPECT_TRUE(Take(i));
  EXPECT_EQ(Wake(), nullptr);
  EXPECT_FALSE(Take(3));
}

TEST_F(ReceiveLineTest, WhatIsKeptIsForNobodyElse) {
  EXPECT_FALSE(Take(0));
  Post(1);
  ASSERT_EQ(Wake(), &at(0));
  EXPECT_FALSE(Take(1)) << "it has just come";
  Post(1);
  ASSERT_EQ(Wake(), &at(1));
  EXPECT_FALSE(Take(2));
  EXPECT_TRUE(Take(1));
  EXPECT_TRUE(Take(0));
}

TEST_F(ReceiveLineTest, WhatIsKeptForNobodyIsForWhoComes) {
  EXPECT_FALSE(Take(0));
  Post(3);
  ASSERT_EQ(Wake(), &at(0));
  EXPECT_TRUE(Take(1));
  EXPECT_TRUE(Take(1));
  EXPECT_FALSE(Take(1));
  EXPECT_TRUE(Take(0));
}

TEST_F(ReceiveLineTest, WhoLeavesPassesItOn) {
  AllWait();
  Post(2);
  ASSERT_EQ(Wake(), &at(0));
  ASSERT_EQ(Wake(), &at(1));
  line_.Leave(at(2));  // not woken, so it has nothing to pass on
  EXPECT_EQ(Wake(), nullptr);
  line_.Leave(at(0));
  EXPECT_EQ(Wake(), &at(3));
  EXPECT_EQ(Wake(), nullptr);
  line_.Leave(at(0));  // once more
  EXPECT_TRUE(Take(1));
  EXPECT_TRUE(Take(3));
  EXPECT_TRUE(line_.empty());
}

TEST_F(ReceiveLineTest, WhoIsLateLosesWhatWasKept) {
  AllWait();
  Post(1);
  ASSERT_EQ(Wake(100), &at(0));
  EXPECT_EQ(line_.expiry(), 100 + kLater);
  line_.Expire(100 + kLater - 1);
  EXPECT_EQ(Wake(), nullptr);
  line_.Expire(100 + kLater);
  ASSERT_EQ(Wake(100 + kLater), &at(1));
  EXPECT_TRUE(Take(1));
  EXPECT_FALSE(Take(0));
  Post(1);
  EXPECT_EQ(Wake(), &at(0)) << "it went to the front";
  EXPECT_TRUE(Take(0));
}

TEST_F(ReceiveLineTest, WhoIsLateTakesWhatIsThere) {
  AllWait();
  Post(1);
  ASSERT_EQ(Wake(0), &at(0));
  line_.Expire(kLater);
  ASSERT_EQ(Wake(kLater), &at(1));
  EXPECT_TRUE(at(1).MayTake());
  EXPECT_TRUE(Take(0)) << "it came before the other one";
  EXPECT_FALSE(at(1).MayTake());
  EXPECT_FALSE(Take(1));
  Post(1);
  EXPECT_EQ(Wake(), &at(1)) << "it went to the front";
}

// However late the waiters come, one of them takes the receive.
TEST_F(ReceiveLineTest, AllAreLateForEver) {
  AllWait();
  Post(1);
  Nanos now = 0;
  int taken = 0;
  for (int i = 0; i < 3 * kWaiters; ++i, now += kLater) {
    line_.Expire(now);
    Waiter* const woken = Wake(now);
    if (woken == nullptr) break;  // all are late
    line_.Expire(now + kLater);
  }
  for (int i = 0; i < kWaiters; ++i) taken += Take(i);
  EXPECT_EQ(taken, 1);
}

TEST_F(ReceiveLineTest, NobodyLooksWhereNobodyWaits) {
  EXPECT_FALSE(Take(0));
  EXPECT_EQ(line_.expiry(), ReceiveLine::kNever);
  Post(1);
  ASSERT_EQ(Wake(5), &at(0));
  EXPECT_EQ(line_.expiry(), ReceiveLine::kNever);
  EXPECT_FALSE(Take(1));
  EXPECT_EQ(line_.expiry(), 5 + kLater);
  EXPECT_TRUE(Take(0));
  EXPECT_EQ(line_.expiry(), ReceiveLine::kNever);
}

TEST_F(ReceiveLineTest, OneThatWaitsNeedNotCome) {
  EXPECT_TRUE(at(0).MayTake());
  EXPECT_FALSE(Take(0));
  EXPECT_FALSE(at(0).MayTake());
  Post(1);
  ASSERT_EQ(Wake(0), &at(0));
  EXPECT_TRUE(at(0).MayTake());
  line_.Expire(kLater);
  EXPECT_TRUE(at(0).MayTake());
}

}  // namespace
}  // namespace viaduct::verbs
