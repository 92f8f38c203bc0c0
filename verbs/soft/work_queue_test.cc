#include "verbs/soft/work_queue.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

// The queues are made on the heap: gcc's ASan aligns what it moves off the stack to 32 bytes only.

TEST(WorkQueueTest, HoldsWhatItWasMadeFor) {
  const auto made = std::make_unique<WorkQueue<ReceiveEntry>>();
  WorkQueue<ReceiveEntry>& queue = *made;
  ASSERT_TRUE(queue.Allow(5, 3));
  EXPECT_EQ(queue.max_requests(), 5u);
  EXPECT_FALSE(queue.HasRoom(1)) << "nothing before it is needed";
  ASSERT_TRUE(queue.MakeRoom(1));
  for (int i = 0; i < 5; i++) {
    EXPECT_TRUE(queue.HasRoom(1));
    queue.CopySegments(queue.posted.load(), {});
    queue.posted.store(queue.posted.load() + 1);
  }
  EXPECT_FALSE(queue.HasRoom(1));
  EXPECT_FALSE(queue.MakeRoom(1));
  queue.reaped.store(1);
  EXPECT_TRUE(queue.HasRoom(0));
  EXPECT_FALSE(queue.HasRoom(2));
  ASSERT_TRUE(queue.MakeRoom(2));
  EXPECT_TRUE(queue.HasRoom(2));
}

TEST(WorkQueueTest, CopiesSegments) {
  const auto made = std::make_unique<WorkQueue<SendEntry>>();
  WorkQueue<SendEntry>& queue = *made;
  ASSERT_TRUE(queue.Allow(4, 252));
  ASSERT_TRUE(queue.MakeRoom(252));
  std::vector<Segment> segments(252);
  for (uint32_t i = 0; i < 252; i++) segments[i] = {i, i + 1, i};
  EXPECT_EQ(queue.CopySegments(2, segments), 252u * 251 / 2);
  EXPECT_EQ(queue.CopySegments(3, {}), 0u);
  const Segment one = {5, 6, 7};
  EXPECT_EQ(queue.CopySegments(1, {&one, 1}), 7u);
  EXPECT_EQ(queue.segments(2).size(), 252u);
  EXPECT_EQ(queue.segments(2)[251].key, 252u);
  EXPECT_TRUE(queue.segments(3).empty());
  EXPECT_EQ(queue.segments(1)[0].length, 7u);
}

TEST(WorkQueueTest, GrowsWithWhatIsPosted) {
  const auto made = std::make_unique<WorkQueue<ReceiveEntry>>();
  WorkQueue<ReceiveEntry>& queue = *made;
  ASSERT_TRUE(queue.Allow(4, 2));
  ASSERT_TRUE(queue.MakeRoom(2));
  queue.posted.store(7);
  queue.done.store(5);
  queue.reaped.store(4);
  for (uint64_t n = 4; n < 7; n++) {
    const Segment two[2] = {{n, 1, 10}, {n, 2, 20}};
    queue.CopySegments(n, two);
    queue.at(n).id = n;
  }
  ASSERT_TRUE(queue.Allow(100, 9));
  for (uint64_t n = 7; n < 104; n++) {
    ASSERT_TRUE(queue.HasRoom(1) || queue.MakeRoom(1));
    queue.at(n).id = n;
    queue.at(n).segment_count = 1;
    queue.posted.store(n + 1);
  }
  EXPECT_FALSE(queue.MakeRoom(1));
  for (uint64_t n = 4; n < 104; n++) {
    EXPECT_EQ(queue.at(n).id, n);
    if (n >= 7) continue;
    ASSERT_EQ(queue.segments(n).size(), 2u);
    EXPECT_EQ(queue.segments(n)[1].length, 20u);
  }
  ASSERT_TRUE(queue.Allow(1, 1)) << "never less";
  EXPECT_EQ(queue.max_requests(), 100u);
  EXPECT_EQ(queue.max_segments(), 9u);
}

}  // namespace
}  // namespace viaduct::verbs
