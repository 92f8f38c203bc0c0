#include "vipl/descriptor_ring.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace viaduct::vipl {
namespace {

// Posts, completes and takes in turn, with `most` in use at the most.
TEST(DescriptorRingTest, KeepsOrderWhileItGrows) {
  DescriptorRing ring;
  DescriptorRing::Cursor post = ring.begin(), complete = ring.begin(), take = ring.begin();
  uint32_t posted = 0, completed = 0, taken = 0;
  constexpr uint32_t kMost[] = {1, 5, 31, 32, 100, 40, 1, 500, 62};
  for (uint32_t most : kMost) {
    for (int round = 0; round < 200; ++round) {
      while (posted - taken < most) {
        ASSERT_TRUE(ring.HasRoom(post, posted - taken) || ring.AddBlock(post));
        post.Next() = {nullptr, posted++, 0};
      }
      while (completed != posted) {
        DescriptorRing::Slot& slot = complete.Next();
        ASSERT_EQ(slot.memory, completed++);
        slot.status = slot.memory + 1;
      }
      const uint32_t leave = static_cast<uint32_t>(round) % most;
      while (posted - taken > leave) {
        const DescriptorRing::Slot& slot = take.Next();
        ASSERT_EQ(slot.memory, taken++);
        ASSERT_EQ(slot.status, taken);
      }
    }
  }
}

// `single` descriptors that go one by one leave the cursors at any place of a block before `burst`
// are in use.
void GoOneByOneAndThenAtOnce(uint32_t single, uint32_t burst) {
  DescriptorRing ring;
  DescriptorRing::Cursor post = ring.begin(), complete = ring.begin(), take = ring.begin();
  uint32_t posted = 0, completed = 0, taken = 0;
  const auto turn = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_TRUE(ring.HasRoom(post, posted - taken) || ring.AddBlock(post));
      post.Next() = {nullptr, posted++, 0};
    }
    while (completed != posted) ASSERT_EQ(complete.Next().memory, completed++);
    while (taken != posted) ASSERT_EQ(take.Next().memory, taken++);
  };
  for (uint32_t i = 0; i < single; ++i) turn(1);
  turn(burst);
  turn(2 * burst);
}

TEST(DescriptorRingTest, GrowsWhereverItsCursorsStand) {
  for (uint32_t single = 0; single < 130; ++single) {
    for (uint32_t burst = 1; burst < 130; ++burst) {
      GoOneByOneAndThenAtOnce(single, burst);
      ASSERT_FALSE(HasFailure()) << single << " and then " << burst;
    }
  }
}

TEST(DescriptorRingTest, AnEmptyRingHasNoBlock) {
  DescriptorRing ring;
  EXPECT_FALSE(ring.HasRoom(ring.begin(), 0));
}

}  // namespace
}  // namespace viaduct::vipl
