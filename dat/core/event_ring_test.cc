#include "dat/core/event_ring.h"

#include <gtest/gtest.h>

namespace viaduct::core {
namespace {

Event Numbered(uint64_t number) {
  Event event;
  event.cookie = number;
  return event;
}

TEST(EventRing, KeepsOrderAcrossWrapAndGrowth) {
  EventRing ring;
  uint64_t pushed = 0, popped = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 7 + round; ++i) ring.Push(Numbered(pushed++));
    for (int i = 0; i < 5 + round / 2; ++i) {
      ASSERT_EQ(ring.Front().cookie, popped++);
      ring.Pop();
    }
    ASSERT_EQ(ring.size(), pushed - popped);
  }
  for (; !ring.empty(); ring.Pop()) ASSERT_EQ(ring.Front().cookie, popped++);
  EXPECT_EQ(popped, pushed);
}

TEST(EventRing, HasTheRoomThatWasReserved) {
  EventRing ring;
  ring.Reserve(20);
  EXPECT_EQ(ring.capacity(), 32u);
  for (uint64_t i = 0; i < 32; ++i) ring.Push(Numbered(i));
  EXPECT_EQ(ring.capacity(), 32u);
  ring.Push(Numbered(32));
  EXPECT_EQ(ring.capacity(), 64u);
  ring.Reserve(1);
  EXPECT_EQ(ring.capacity(), 64u);
  for (uint64_t i = 0; i < 33; ++i, ring.Pop()) ASSERT_EQ(ring.Front().cookie, i);
  EXPECT_TRUE(ring.empty());
}

TEST(EventRing, WhatIsKeptIsThereWhenItIsGivenUp) {
  EventRing ring;
  ring.Reserve(4);
  ring.Push(Numbered(0));
  ring.Keep(3, /*least=*/4);
  EXPECT_EQ(ring.capacity(), 8u);
  EXPECT_EQ(ring.MakeRoom(), 4u) << "as if there were no more than five";
  for (uint64_t i = 1; i < 5; ++i) ring.Push(Numbered(i));
  ring.GiveUp(3);
  EXPECT_EQ(ring.MakeRoom(), 3u);
  for (uint64_t i = 5; i < 8; ++i) ring.Push(Numbered(i));
  EXPECT_EQ(ring.capacity(), 8u);
  for (uint64_t i = 0; i < 8; ++i, ring.Pop()) ASSERT_EQ(ring.Front().cookie, i);
}

TEST(EventRing, OthersDoNotTakeWhatIsKept) {
  EventRing ring;
  ring.Keep(2, /*least=*/2);
  for (uint64_t i = 0; i < 3; ++i) ring.Push(Numbered(i));
  EXPECT_EQ(ring.capacity(), 8u);
  EXPECT_EQ(ring.MakeRoom(), 3u);
  ring.Reserve(7);
  EXPECT_EQ(ring.capacity(), 16u);
  EXPECT_EQ(ring.MakeRoom(), 11u);
  ring.Keep(1, /*least=*/2);
  EXPECT_EQ(ring.capacity(), 16u) << "it has room for these";
  EXPECT_EQ(ring.MakeRoom(), 10u);
}

TEST(EventRing, RemoveIfKeepsTheOrderOfTheRest) {
  EventRing ring;
  for (uint64_t i = 0; i < 100; ++i) {
    ring.Push(Numbered(i));
    if (i % 4 == 0) ring.Pop();  // moves the head
  }
  ring.RemoveIf([](const Event& event) { return event.cookie % 3 == 0; });
  uint64_t last = 0;
  for (; !ring.empty(); ring.Pop()) {
    EXPECT_NE(ring.Front().cookie % 3, 0u);
    EXPECT_GT(ring.Front().cookie, last);
    last = ring.Front().cookie;
  }
  EXPECT_EQ(last, 98u);
}

TEST(EventRing, RemoveFirstTakesOneOutOfTheMiddle) {
  EventRing ring;
  ring.Reserve(8);
  for (uint64_t i = 0; i < 5; ++i) ring.Push(Numbered(i));
  for (uint64_t i = 0; i < 4; ++i) ring.Pop();
  ring.Push(Numbered(99));
  for (uint64_t i = 0; i < 6; ++i) ring.Push(Numbered(i % 4));  // across the end of the array
  ring.RemoveFirst([](const Event& event) { return event.cookie == 2; });
  ring.RemoveFirst([](const Event& event) { return event.cookie == 99; });
  ring.RemoveFirst([](const Event& event) { return event.cookie == 77; });
  for (const uint64_t left : {4, 0, 1, 3, 0, 1}) {
    ASSERT_FALSE(ring.empty());
    EXPECT_EQ(ring.Front().cookie, left);
    ring.Pop();
  }
  EXPECT_TRUE(ring.empty());
  ring.RemoveFirst([](const Event&) { return true; });
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace viaduct::core
