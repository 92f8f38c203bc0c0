#include "dat/core/bind_table.h"

#include <cstdint>

#include "dat/core/object.h"
#include "gtest/gtest.h"

namespace viaduct::core {
namespace {

BindTable::Entry Entry(uint64_t cookie) {
  static char window;
  return {&window, cookie};
}

TEST(BindTable, ACompletionTakesItsOwnAndForgetsTheEarlier) {
  BindTable table;
  uint64_t numbers[3];
  for (uint64_t i = 0; i < 3; ++i) numbers[i] = table.Put(Entry(i + 1), 8);
  EXPECT_EQ(table.Take(numbers[1]).cookie, 2u);
  EXPECT_EQ(table.Take(numbers[0]).window, nullptr) << "it had been suppressed";
  EXPECT_EQ(table.Take(numbers[2]).cookie, 3u);
}

TEST(BindTable, WhatWasNotPostedLeavesItsNumber) {
  BindTable table;
  const uint64_t first = table.Put(Entry(1), 8);
  const uint64_t number = table.Put(Entry(2), 8);
  table.DropLast();
  EXPECT_EQ(table.Put(Entry(3), 8), number);
  EXPECT_EQ(table.Take(first).cookie, 1u);
  EXPECT_EQ(table.Take(number).cookie, 3u);
}

// A program may suppress the completions of its binds for ever.
TEST(BindTable, HoldsNoMoreThanMayBecomeEvents) {
  constexpr uint32_t kOutstanding = 4;
  BindTable table;
  uint64_t first = table.Put(Entry(1), kOutstanding), last = first;
  for (uint64_t i = 2; i <= 2 * kOutstanding; ++i) last = table.Put(Entry(i), kOutstanding);
  EXPECT_EQ(last, first + 2 * kOutstanding - 1);
  EXPECT_EQ(table.Take(last - kOutstanding).window, nullptr) << "forgotten";
  EXPECT_EQ(table.Take(last - kOutstanding + 1).cookie, kOutstanding + 1u) << "the oldest that may";
  EXPECT_EQ(table.Take(last).cookie, 2u * kOutstanding);
}

}  // namespace
}  // namespace viaduct::core
