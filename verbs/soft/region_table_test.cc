#include "verbs/soft/region_table.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kAll = kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite;

TEST(RegionTableTest, ChecksRangeRightsAndDomain) {
  RegionTable table;
  const Key key = *table.Register(7, 1000, 100, kLocalRead | kRemoteWrite);
  EXPECT_GE(key, 1u);
  EXPECT_LE(key, 0x7fffffffu);
  EXPECT_TRUE(table.Check(key, 1000, 100, kLocalRead, 7));
  EXPECT_TRUE(table.Check(key, 1099, 1, kLocalRead | kRemoteWrite, 7));
  EXPECT_TRUE(table.Check(key, 1000, 100, kLocalRead, kWildcardDomain));
  EXPECT_FALSE(table.Check(key, 999, 1, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, 1000, 101, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, 1001, 100, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, 1000, ~uint64_t{0}, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, ~uint64_t{0}, 2, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, 1000, 1, kLocalWrite, 7));
  EXPECT_FALSE(table.Check(key, 1000, 1, kLocalRead, 8));
  EXPECT_FALSE(table.Check(0, 1000, 1, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key ^ 0x10000, 1000, 1, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key | 0x80000000u, 1000, 1, kLocalRead, 7));
}

TEST(RegionTableTest, ExplainsARefusal) {
  RegionTable table;
  const Key key = *table.Register(7, 1000, 100, kLocalRead | kRemoteWrite);
  EXPECT_EQ(table.Explain(key, kRemoteWrite, 7), Refusal::kBounds);
  EXPECT_EQ(table.Explain(key, kRemoteRead, 7), Refusal::kRights);
  EXPECT_EQ(table.Explain(key, kRemoteRead, 8), Refusal::kDomain);
  EXPECT_EQ(table.Explain(key ^ 0x10000, kRemoteWrite, 7), Refusal::kKey);
  EXPECT_EQ(table.Explain(0, kRemoteWrite, 7), Refusal::kKey);
  table.Deregister(key);
  EXPECT_EQ(table.Explain(key, kRemoteWrite, 7), Refusal::kKey);
}

TEST(RegionTableTest, AWildcardRegionMatchesEveryDomain) {
  RegionTable table;
  const Key key = *table.Register(kWildcardDomain, 1000, 100, kAll);
  EXPECT_TRUE(table.Check(key, 1000, 100, kAll, 12345));
}

TEST(RegionTableTest, ModifyAndDeregister) {
  RegionTable table;
  const Key key = *table.Register(7, 1000, 100, kAll);
  table.Modify(key, 9, kLocalRead);
  EXPECT_TRUE(table.Check(key, 1000, 1, kLocalRead, 9));
  EXPECT_FALSE(table.Check(key, 1000, 1, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, 1000, 1, kLocalWrite, 9));
  table.Deregister(key);
  EXPECT_FALSE(table.Check(key, 1000, 1, kLocalRead, 9));
  table.Deregister(key);  // nothing happens
}

WindowBinding Binding(Key region, uint64_t address, uint64_t length, uint32_t access) {
  WindowBinding binding;
  binding.region = region;
  binding.address = address;
  binding.length = length;
  binding.access = access;
  binding.domain = binding.owner = 7;
  return binding;
}

TEST(RegionTableTest, AddressesFromZeroAreForResolve) {
  RegionTable table;
  const Key key = *table.Register(7, 1000, 100, kAll, AddressBase::kZero);
  EXPECT_FALSE(table.Check(key, 0, 1, kLocalRead, 7));
  EXPECT_FALSE(table.Check(key, 1000, 1, kLocalRead, 7));
  EXPECT_EQ(table.Resolve(key, 99, 1, kLocalRead, 7), reinterpret_cast<unsigned char*>(1099));
  EXPECT_EQ(table.Resolve(key, 99, 2, kLocalRead, 7), nullptr);
  EXPECT_EQ(table.Resolve(key, 1000, 1, kLocalRead, 7), nullptr);
  EXPECT_EQ(table.Resolve(key, 0, 1, kLocalRead, 8), nullptr);
  table.Modify(key, 8, kLocalRead);
  EXPECT_FALSE(table.Check(key, 0, 1, kLocalRead, 8));
  EXPECT_NE(table.Resolve(key, 0, 1, kLocalRead, 8), nullptr);
  EXPECT_EQ(table.Resolve(key, 0, 1, kLocalWrite, 8), nullptr);
}

TEST(RegionTableTest, AWindowOpensWhenItIsBound) {
  RegionTable table;
  const Key region = *table.Register(7, 1000, 100, kLocalRead | kLocalWrite);
  const Key key = *table.ReserveWindow();
  EXPECT_FALSE(table.Check(key, 0, 0, kRemoteRead, 7));
  EXPECT_FALSE(table.Bind(key, Binding(region, 1000, 101, kRemoteRead)));
  EXPECT_FALSE(table.Bind(key, Binding(region ^ 0x10000, 1000, 1, kRemoteRead)));
  ASSERT_TRUE(table.Bind(key, Binding(region, 1010, 20, kRemoteRead)));
  EXPECT_TRUE(table.Check(key, 1010, 20, kRemoteRead, 7));
  EXPECT_FALSE(table.Check(key, 1010, 21, kRemoteRead, 7));
  EXPECT_FALSE(table.Check(key, 1010, 1, kRemoteWrite, 7));
  EXPECT_FALSE(table.Check(key, 1010, 1, kLocalRead, 7));
  // No window of a window.
  const Key second = *table.ReserveWindow();
  EXPECT_FALSE(table.Bind(second, Binding(key, 1010, 1, kRemoteRead)));
  table.Deregister(key);
  EXPECT_FALSE(table.Check(key, 1010, 1, kRemoteRead, 7));
  // Deregistered before its bind: the bind has no effect, and the window stays closed.
  table.Deregister(second);
  EXPECT_TRUE(table.Bind(second, Binding(region, 1000, 1, kRemoteRead)));
  EXPECT_FALSE(table.Check(second, 1000, 1, kRemoteRead, 7));
  // Then its region may go, too.
  table.Deregister(region);
  EXPECT_TRUE(table.Bind(second, Binding(region, 1000, 1, kRemoteRead)));
}

TEST(RegionTableTest, AWindowNeedsTheRegionsRights) {
  RegionTable table;
  const Key key = *table.ReserveWindow();
  const Key read = *table.Register(7, 1000, 100, kLocalRead);
  const Key write = *table.Register(7, 1000, 100, kLocalWrite);
  EXPECT_TRUE(table.Bind(key, Binding(read, 1000, 1, kRemoteRead)));
  EXPECT_FALSE(table.Bind(key, Binding(write, 1000, 1, kRemoteRead)));
  EXPECT_FALSE(table.Bind(key, Binding(read, 1000, 1, kRemoteWrite)));
  EXPECT_TRUE(table.Bind(key, Binding(write, 1000, 1, kRemoteWrite)));
  EXPECT_FALSE(table.Bind(key, Binding(read, 1000, 1, kRemoteAtomic)));
  EXPECT_FALSE(table.Bind(key, Binding(write, 1000, 1, kRemoteAtomic)));
}

// Not even for a window without any rights.
TEST(RegionTableTest, AWindowIsNoRegionToBindTo) {
  RegionTable table;
  const Key region = *table.Register(7, 1000, 100, kLocalRead | kLocalWrite);
  const Key window = *table.ReserveWindow();
  ASSERT_TRUE(table.Bind(window, Binding(region, 1000, 100, kRemoteRead)));
  const Key other = *table.ReserveWindow();
  EXPECT_FALSE(table.Bind(other, Binding(window, 1000, 100, 0)));
  EXPECT_TRUE(table.Bind(other, Binding(region, 1000, 100, 0)));
}

TEST(RegionTableTest, WindowsEndWithTheirRegion) {
  RegionTable table;
  for (const bool modify : {false, true}) {
    const Key region = *table.Register(7, 1000, 100, kLocalRead | kLocalWrite);
    const Key key = *table.ReserveWindow();
    ASSERT_TRUE(table.Bind(key, Binding(region, 1000, 100, kRemoteRead)));
    if (modify) {
      table.Modify(region, 7, kLocalRead);
    } else {
      table.Deregister(region);
    }
    EXPECT_FALSE(table.Check(key, 1000, 1, kRemoteRead, 7));
    table.Deregister(key);
  }
}

TEST(RegionTableTest, OnlyItsOwnerInvalidates) {
  RegionTable table;
  const Key region = *table.Register(7, 1000, 100, kLocalRead | kLocalWrite);
  const Key key = *table.ReserveWindow();
  WindowBinding binding = Binding(region, 1000, 100, kRemoteRead);
  binding.owner = 1234;
  ASSERT_TRUE(table.Bind(key, binding));
  EXPECT_FALSE(table.Check(key, 1000, 1, kRemoteRead, 7));
  EXPECT_TRUE(table.Check(key, 1000, 1, kRemoteRead, 1234));
  EXPECT_FALSE(table.Invalidate(key, 7));
  EXPECT_FALSE(table.Invalidate(region, 1234));
  EXPECT_TRUE(table.Invalidate(key, 1234));
  EXPECT_FALSE(table.Invalidate(key, 1234));
  EXPECT_FALSE(table.Check(key, 1000, 1, kRemoteRead, 1234));
  table.Deregister(key);
}

TEST(RegionTableTest, KeysDifferAndAreNotGuessedFromOthers) {
  RegionTable table;
  std::set<Key> keys;
  std::set<uint32_t> steps;
  Key last = 0;
  for (int i = 0; i < 2000; i++) {
    const Key key = *table.Register(1, 1000, 1, kAll);
    EXPECT_TRUE(keys.insert(key).second);
    steps.insert(key - last);
    last = key;
  }
  EXPECT_GT(steps.size(), 1900u);
}

TEST(RegionTableTest, FullTable) {
  RegionTable table;
  std::vector<Key> keys;
  for (uint32_t i = 0; i < RegionTable::kMaxRegions; i++) {
    keys.push_back(*table.Register(1, i + 1, 1, kAll));
  }
  EXPECT_EQ(table.Register(1, 1, 1, kAll).status().code(), absl::StatusCode::kResourceExhausted);
  table.Deregister(keys[77]);
  EXPECT_TRUE(table.Register(1, 1, 1, kAll).ok());
}

// Calls `check` in one thread while another modifies the region in turns. Returns how often it was
// true.
template <typename Check>
uint64_t CountWhileModified(RegionTable& table, Key key, const WindowBinding& first,
                            const WindowBinding& second, uint64_t* checks, Check check) {
  std::atomic<bool> started{false};
  std::atomic<bool> stop{false};
  uint64_t granted = 0;
  std::thread checker([&] {
    do {
      ++*checks;
      granted += check() ? 1 : 0;
      started.store(true);
    } while (!stop.load(std::memory_order_relaxed));
  });
  while (!started.load()) sched_yield();
  for (int i = 0; i < 50'000; i++) {
    const WindowBinding& next = i % 2 == 0 ? second : first;
    table.Modify(key, next.domain, next.access);
  }
  stop.store(true);
  checker.join();
  return granted;
}

TEST(RegionTableTest, WhatOldAndNewRightsAllowIsAlwaysAllowed) {
  for (const AddressBase base : {AddressBase::kVirtual, AddressBase::kZero}) {
    RegionTable table;
    const Key key = *table.Register(7, 1000, 100, kAll, base);
    uint64_t checks = 0;
    const uint64_t granted =
        CountWhileModified(table, key, Binding(key, 0, 0, kAll),
                           Binding(key, 0, 0, kLocalRead | kRemoteWrite), &checks, [&] {
                             const uint64_t address = base == AddressBase::kZero ? 0 : 1000;
                             return table.Resolve(key, address, 100, kRemoteWrite, 7) != nullptr;
                           });
    EXPECT_EQ(granted, checks);
  }
}

TEST(RegionTableTest, NobodySeesTheNewRightsWithTheOldDomain) {
  RegionTable table;
  const Key key = *table.Register(7, 1000, 100, kLocalRead);
  WindowBinding other = Binding(key, 0, 0, kRemoteWrite);
  other.domain = 8;
  uint64_t checks = 0;
  EXPECT_EQ(CountWhileModified(table, key, Binding(key, 0, 0, kLocalRead), other, &checks,
                               [&] {
                                 return table.Check(key, 1000, 1, kRemoteWrite, 7) ||
                                        table.Check(key, 1000, 1, kLocalRead, 8);
                               }),
            0u);
}

// What a holder of the lock was allowed to write is written before Deregister returns, or before a
// Modify returns that takes the right away.
TEST(RegionTableTest, NothingLandsAfterDeregisterOrModify) {
  RegionTable table;
  PassLock lock;
  table.AddUser(&lock);
  uint64_t memory = 0;  // written under the key only; read by the owner without it
  std::atomic<Key> current{0};
  std::atomic<bool> stop{false};
  std::thread placer([&] {
    while (!stop.load()) {
      PassLockHolder holder(&lock);
      const Key key = current.load();
      if (table.Check(key, reinterpret_cast<uint64_t>(&memory), 8, kRemoteWrite, 1)) memory++;
    }
  });
  for (int i = 0; i < 2000; i++) {
    const Key key = *table.Register(1, reinterpret_cast<uint64_t>(&memory), 8, kAll);
    current.store(key);
    sched_yield();
    const bool modify = i % 2 != 0;
    modify ? table.Modify(key, 1, kLocalRead) : table.Deregister(key);
    const uint64_t seen = memory;
    sched_yield();
    ASSERT_EQ(memory, seen);
    if (modify) table.Deregister(key);
  }
  stop.store(true);
  placer.join();
  table.RemoveUser(&lock);
}

}  // namespace
}  // namespace viaduct::verbs
