#include "compat/time.h"

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

class FixedClock : public verbs::Clock {
 public:
  verbs::Nanos Now() const override { return 5; }
};

TEST(TimeTest, CountsMilliseconds) {
  EXPECT_EQ(DeadlineAfter(FixedClock(), 200).at(), 200000005);
  EXPECT_EQ(DeadlineAfter(FixedClock(), 0).at(), 5);
}

TEST(TimeTest, InfinityHasTwoForms) {
  EXPECT_TRUE(DeadlineAfter(FixedClock(), VIP_INFINITE).infinite());
  EXPECT_TRUE(DeadlineAfter(FixedClock(), 0xFFFFFFFFul).infinite());
  EXPECT_FALSE(DeadlineAfter(FixedClock(), 0xFFFFFFFEul).infinite());
}

TEST(TimeTest, WhatDoesNotFitIsInfinite) {
  EXPECT_TRUE(DeadlineAfter(FixedClock(), VIP_INFINITE - 1).infinite());
  EXPECT_TRUE(DeadlineAfter(FixedClock(), 1ul << 62).infinite());
}

}  // namespace
}  // namespace viaduct::compat
