#include "verbs/base/shared_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(SharedMappingTest, TellsSharedFromPrivate) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<char*>(
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_TRUE(IsSharedMapping(memory, 4 * page));
  EXPECT_TRUE(IsSharedMapping(memory + 5, 1));
  EXPECT_TRUE(IsSharedMapping(memory + page - 1, 2));
  // Two mappings side by side are one range.
  ASSERT_EQ(mprotect(memory + page, page, PROT_READ), 0);
  EXPECT_TRUE(IsSharedMapping(memory, 4 * page));
  // A private page in the middle.
  ASSERT_EQ(
      mmap(memory + 2 * page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      memory + 2 * page);
  EXPECT_FALSE(IsSharedMapping(memory, 4 * page));
  EXPECT_TRUE(IsSharedMapping(memory + 3 * page, page));
  ASSERT_EQ(munmap(memory + page, page), 0);
  EXPECT_FALSE(IsSharedMapping(memory, 2 * page));
  munmap(memory, 4 * page);
  const int local = 0;
  EXPECT_FALSE(IsSharedMapping(&local, sizeof local));
}

}  // namespace
}  // namespace viaduct::verbs
