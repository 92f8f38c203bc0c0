// Memory runs out while the table grows, or after that.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/device.h"
#include "verbs/soft/open.h"
#include "verbs/soft/region_table.h"

namespace {

thread_local bool fail_next = false;  // this thread's next allocation, once

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = std::exchange(fail_next, false) ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace viaduct::verbs {
namespace {

// Returns 0 if there was no memory.
Key TryRegister(RegionTable& table) {
  fail_next = true;
  try {
    const absl::StatusOr<Key> key = table.Register(1, 1000, 1, kLocalRead);
    fail_next = false;
    return key.value_or(0);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// Each growth fails once.
TEST(RegionTableMemoryTest, AGrowthThatFailsLeavesTheTableAsItWas) {
  RegionTable table;
  std::vector<Key> keys;
  std::set<uint32_t> indices;
  int failures = 0;
  while (keys.size() < RegionTable::kMaxRegions) {
    Key key = TryRegister(table);
    if (key == 0) {
      ++failures;
      key = table.Register(1, 1000, 1, kLocalRead).value_or(0);
    }
    ASSERT_NE(key, 0u) << keys.size();
    keys.push_back(key);
    ASSERT_TRUE(indices.insert(key % RegionTable::kMaxRegions).second) << keys.size();
  }
  EXPECT_GE(failures, 9);
  EXPECT_FALSE(table.Register(1, 1000, 1, kLocalRead).ok());
  for (const Key key : keys) {
    fail_next = true;
    table.Deregister(key);
    EXPECT_TRUE(std::exchange(fail_next, false)) << "what comes back needs no memory";
  }
}

TEST(RegionTableMemoryTest, ARegionWithoutAnObjectKeepsNoKey) {
  auto context = OpenSoftDevice(*Address::Parse("127.0.0.1"), "auto");
  ASSERT_TRUE(context.ok()) << context.status();
  auto domain = (*context)->CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok()) << domain.status();
  char byte = 0;
  const auto try_to_register = [&] { return (*context)->Register(**domain, &byte, 1, kLocalRead); };
  {
    std::vector<std::unique_ptr<MemoryRegion>> regions;  // after them the table does not grow
    for (uint32_t i = 0; i < RegionTable::kMaxRegions; ++i) {
      auto region = try_to_register();
      ASSERT_TRUE(region.ok()) << region.status();
      regions.push_back(*std::move(region));
    }
  }
  uint32_t failures = 0;
  for (uint32_t i = 0; i <= RegionTable::kMaxRegions; ++i) {
    fail_next = true;
    try {
      (void)try_to_register();
    } catch (const std::bad_alloc&) {
      ++failures;
    }
  }
  fail_next = false;
  EXPECT_EQ(failures, RegionTable::kMaxRegions + 1);
  EXPECT_TRUE(try_to_register().ok());
}

}  // namespace
}  // namespace viaduct::verbs
