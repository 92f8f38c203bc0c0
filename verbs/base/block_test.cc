#include "verbs/base/block.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace viaduct::verbs {
namespace {

TEST(Block, IsAlignedAndWritable) {
  for (size_t bytes : {size_t{1}, size_t{64}, size_t{1000}, size_t{64} << 10, size_t{3} << 20}) {
    auto* block = static_cast<char*>(AllocateBlock(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::fill_n(block, bytes, 'x');
    FreeBlock(block, bytes);
  }
}

TEST(Block, ASmallOneIsAlignedAsAsked) {
  for (size_t alignment = 16; alignment <= 256; alignment *= 2) {
    void* const block = AllocateSmallBlock(100, alignment);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    std::fill_n(static_cast<char*>(block), 100, 'x');
    FreeSmallBlock(block);
  }
}

TEST(Block, ALargeOneTouchesNoPage) {
  constexpr size_t kBytes = 1 << 20;
  void* block = AllocateBlock(kBytes);
  ASSERT_NE(block, nullptr);
  std::vector<unsigned char> present(kBytes / static_cast<size_t>(getpagesize()));
  ASSERT_EQ(mincore(block, kBytes, present.data()), 0);
  EXPECT_EQ(std::count_if(present.begin(), present.end(), [](unsigned char p) { return p & 1; }),
            0);
  FreeBlock(block, kBytes);
}

// Can fail only by a crash.
TEST(Block, NullMayBeFreed) {
  FreeBlock(nullptr, 10);
  FreeBlock(nullptr, 1 << 20);
}

TEST(Block, TooMuchIsNull) { EXPECT_EQ(AllocateBlock(SIZE_MAX / 2), nullptr); }

}  // namespace
}  // namespace viaduct::verbs
