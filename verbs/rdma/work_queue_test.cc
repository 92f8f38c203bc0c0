#include "verbs/rdma/work_queue.h"

#include "gtest/gtest.h"

namespace viaduct::verbs::rdma {
namespace {

// Posts a record for which the device owes `parts` completions.
WorkRecord& Post(WorkQueue& queue, uint64_t id, uint16_t parts) {
  WorkRecord& record = queue.Next();
  record = WorkRecord();
  record.id = id;
  record.parts = parts;
  queue.Publish();
  return record;
}

TEST(WorkQueueTest, HoldsAsManyAsItWasMadeFor) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(3, 0));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(queue.full());
    Post(queue, i, 1);
  }
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.open(), 3u);
  queue.Done(*queue.OldestAtDevice(false), Status::kSuccess);
  EXPECT_TRUE(queue.full()) << "until it is polled";
  ASSERT_TRUE(queue.HasNews());
  queue.PopHead();
  EXPECT_FALSE(queue.full());
}

TEST(WorkQueueTest, WhatIsDoneEarlyWaitsForItsTurn) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(4, 0));
  Post(queue, 1, 1);
  queue.Done(Post(queue, 2, 0), Status::kLocalLength);
  Post(queue, 3, 2);
  EXPECT_FALSE(queue.HasNews());
  EXPECT_EQ(queue.OldestAtDevice(false)->id, 1u);
  queue.Done(*queue.OldestAtDevice(false), Status::kSuccess);
  EXPECT_EQ(queue.OldestAtDevice(false)->id, 3u);
  for (uint64_t id : {1, 2}) {
    ASSERT_TRUE(queue.HasNews());
    EXPECT_EQ(queue.At(queue.head()).id, id);
    queue.PopHead();
  }
  EXPECT_FALSE(queue.HasNews());
  EXPECT_EQ(queue.OldestOpen()->id, 3u);
}

TEST(WorkQueueTest, NothingIsNewsBehindTheGate) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(4, 0));
  queue.Done(Post(queue, 1, 0), Status::kFlushed);
  WorkRecord& behind = Post(queue, 2, 1);
  queue.Gate();
  queue.Done(behind, Status::kSuccess);
  queue.Done(Post(queue, 3, 1), Status::kSuccess);
  ASSERT_TRUE(queue.HasNews());
  queue.PopHead();
  EXPECT_FALSE(queue.HasNews());
  queue.Clear(WorkQueue::kGated);
  for (uint64_t id : {2, 3}) {
    ASSERT_TRUE(queue.HasNews());
    EXPECT_EQ(queue.At(queue.head()).id, id);
    queue.PopHead();
  }
}

TEST(WorkQueueTest, BehindAGateThatNeverOpensAllIsAsItWasPosted) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(4, 0));
  queue.Gate();
  WorkRecord& record = Post(queue, 1, 1);
  record.opcode = Opcode::kReceiveWrite;
  record.length = 8;
  record.has_immediate = record.solicited = true;
  queue.Done(record, Status::kLocalLength);
  queue.EndGate();
  EXPECT_FALSE(queue.HasNews());
  EXPECT_EQ(queue.open(), 1u);
  EXPECT_EQ(queue.OldestOpen(), &record);
  EXPECT_EQ(record.status, Status::kSuccess);
  EXPECT_EQ(record.opcode, Opcode::kReceive);
  EXPECT_EQ(record.length, 0u);
  EXPECT_FALSE(record.has_immediate);
  EXPECT_FALSE(record.solicited);
}

TEST(WorkQueueTest, ReadsHaveTurnsOfTheirOwn) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(4, 0));
  Post(queue, 1, 1).opcode = Opcode::kRead;
  Post(queue, 2, 2).flags = WorkRecord::kReadOwed;
  Post(queue, 3, 1);
  EXPECT_EQ(queue.OldestAtDevice(true)->id, 1u);
  EXPECT_EQ(queue.OldestAtDevice(false)->id, 2u);
  queue.OldestAtDevice(false)->parts = 1;  // the read after it
  EXPECT_EQ(queue.OldestAtDevice(false)->id, 3u);
  queue.Done(*queue.OldestAtDevice(false), Status::kSuccess);
  EXPECT_EQ(queue.OldestAtDevice(false), nullptr);
  EXPECT_FALSE(queue.HasNews());
  queue.Done(*queue.OldestAtDevice(true), Status::kFlushed);
  EXPECT_EQ(queue.OldestAtDevice(true)->id, 2u);
}

TEST(WorkQueueTest, AFenceWaitsForReadsAndAtomics) {
  for (const Opcode opcode : {Opcode::kRead, Opcode::kCompareAndSwap, Opcode::kFetchAndAdd}) {
    WorkQueue queue;
    ASSERT_TRUE(queue.Resize(4, 0));
    Post(queue, 1, 1);
    WorkRecord& read = Post(queue, 2, 1);
    EXPECT_FALSE(queue.HasOpenRead());
    read.opcode = opcode;
    EXPECT_TRUE(queue.HasOpenRead());
    queue.Done(read, Status::kSuccess);
    EXPECT_FALSE(queue.HasOpenRead());
  }
}

TEST(WorkQueueTest, WhatWasDoneBehindAFailureIsFlushed) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(8, 0));
  Post(queue, 1, 1);
  WorkRecord& failed = Post(queue, 2, 1);
  queue.Done(Post(queue, 3, 1), Status::kSuccess);
  WorkRecord& bind = Post(queue, 4, 0);
  bind.opcode = Opcode::kBind;
  queue.Done(bind, Status::kSuccess);
  queue.Done(Post(queue, 5, 1), Status::kLocalLength);
  queue.Done(failed, Status::kTransport);
  queue.FlushDoneBehind(failed);
  const Status expected[] = {Status::kSuccess, Status::kTransport, Status::kFlushed,
                             Status::kSuccess, Status::kLocalLength};
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(queue.At(i).status, expected[i]) << i;
}

TEST(WorkQueueTest, TheHeadGoesStraightWhereNothingElseIsToBeDone) {
  using Rest = WorkRecord::Rest;
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(8, 0));
  EXPECT_EQ(queue.HeadAtDevice(), nullptr);
  Post(queue, 1, 1).rest = Rest::kNone;
  Post(queue, 2, 2);
  EXPECT_EQ(queue.HeadAtDevice()->id, 1u);
  queue.TakeHead();
  EXPECT_EQ(queue.open(), 1u);
  EXPECT_EQ(queue.HeadAtDevice(), nullptr) << "two parts";
  queue.Done(*queue.OldestAtDevice(false), Status::kSuccess);
  queue.PopHead();
  EXPECT_EQ(queue.HeadAtDevice(), nullptr) << "none";
  Post(queue, 3, 1).rest = Rest::kNone;
  EXPECT_EQ(queue.HeadAtDevice()->id, 3u);
  queue.Done(*queue.OldestAtDevice(false), Status::kFlushed);
  EXPECT_EQ(queue.HeadAtDevice(), nullptr) << "done";
  queue.PopHead();
  Post(queue, 4, 1).rest = Rest::kFrame;
  EXPECT_EQ(queue.HeadAtDevice(), nullptr) << "a frame is to be looked at";
  EXPECT_EQ(queue.OldestAtDevice(false)->id, 4u);
}

// A poller that took the requests before it straight would not see that its turn has come.
TEST(WorkQueueTest, OneThatIsDoneEarlyBendsTheWayUntilItsTurn) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(8, 0));
  Post(queue, 1, 1).rest = WorkRecord::Rest::kNone;
  queue.Done(Post(queue, 2, 0), Status::kSuccess);
  Post(queue, 3, 1).rest = WorkRecord::Rest::kNone;
  EXPECT_FALSE(queue.straight());
  queue.ClearDoneBehind();
  EXPECT_FALSE(queue.straight()) << "it still waits";
  queue.Done(*queue.OldestAtDevice(false), Status::kSuccess);
  queue.PopHead();
  queue.ClearDoneBehind();
  EXPECT_FALSE(queue.straight());
  queue.PopHead();
  queue.ClearDoneBehind();
  EXPECT_TRUE(queue.straight());
}

TEST(WorkQueueTest, APlainOneForgetsWhatLayThere) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(1, 0));
  unsigned char byte = 0;
  WorkRecord& first = Post(queue, 1, 2);
  first.rest = WorkRecord::Rest::kFrame;
  first.bounce.memory = &byte;
  queue.Done(first, Status::kTransport);
  queue.PopHead();
  queue.NextPlain();
  queue.Publish();
  WorkRecord* const head = queue.HeadAtDevice();
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->status, Status::kSuccess);
  EXPECT_EQ(head->parts, 1);
  EXPECT_EQ(head->bounce.memory, nullptr);
}

TEST(WorkQueueTest, AnyDetourBendsTheWay) {
  WorkQueue queue;
  EXPECT_TRUE(queue.straight());
  for (WorkQueue::Detour detour :
       {WorkQueue::kGated, WorkQueue::kListed, WorkQueue::kBounced, WorkQueue::kDrainAwaited}) {
    queue.Set(detour);
    EXPECT_FALSE(queue.straight());
    EXPECT_TRUE(queue.Take(detour));
    EXPECT_FALSE(queue.Take(detour));
    EXPECT_TRUE(queue.straight());
  }
  queue.Set(WorkQueue::kGated);
  queue.Set(WorkQueue::kListed);
  queue.ClearOfConnection();
  EXPECT_TRUE(queue.Has(WorkQueue::kListed));
  EXPECT_FALSE(queue.Has(WorkQueue::kGated));
}

TEST(WorkQueueTest, SingleSegmentsLieSideBySide) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(4, 252));
  Segment* const first = queue.NextSegments(1);
  WorkRecord& record = Post(queue, 1, 1);
  record.segments = 1;
  EXPECT_EQ(queue.SegmentsOf(record), first);
  EXPECT_EQ(queue.NextSegments(1), first + 1);
  EXPECT_GE(queue.NextSegments(2), first + 4) << "behind them";
  EXPECT_EQ(queue.NextSegments(0), nullptr);
}

TEST(WorkQueueTest, GrowsWithWhatIsInIt) {
  WorkQueue queue;
  ASSERT_TRUE(queue.Resize(2, 2));
  // Moves the head away from the beginning of the ring.
  for (int i = 0; i < 3; ++i) {
    queue.Done(Post(queue, i, 0), Status::kSuccess);
    queue.PopHead();
  }
  for (uint16_t i = 0; i < 2; ++i) {
    for (uint16_t k = 0; k <= i; ++k) queue.NextSegments(i + 1)[k] = Segment{i, k, 7};
    Post(queue, 10 + i, 0).segments = i + 1;
  }
  ASSERT_TRUE(queue.Resize(5, 3));
  for (int i = 2; i < 5; ++i) {
    ASSERT_FALSE(queue.full());
    Post(queue, 10 + i, 0);
  }
  EXPECT_TRUE(queue.full());
  for (int i = 0; i < 5; ++i) {
    WorkRecord& record = *queue.OldestOpen();
    EXPECT_EQ(record.id, 10u + i);
    for (int k = 0; k < record.segments; ++k) {
      EXPECT_EQ(queue.SegmentsOf(record)[k].address, static_cast<uint64_t>(i));
      EXPECT_EQ(queue.SegmentsOf(record)[k].key, static_cast<Key>(k));
    }
    queue.Done(record, Status::kFlushed);
    queue.PopHead();
  }
  EXPECT_EQ(queue.OldestOpen(), nullptr);
  EXPECT_EQ(queue.open(), 0u);
}

}  // namespace
}  // namespace viaduct::verbs::rdma
