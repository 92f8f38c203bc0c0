#include "verbs/rdma/region_map.h"

#include <atomic>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs::rdma {
namespace {

RegionEntry Entry(Key key, uint64_t address = 4096, uint64_t length = 100) {
  RegionEntry entry;
  entry.key = key;
  entry.access = kLocalRead | kRemoteRead;
  entry.local_key = key + 1;
  entry.address = entry.memory = address;
  entry.length = length;
  return entry;
}

TEST(RegionMapTest, FindsWhatWasPut) {
  RegionMap map;
  RegionEntry found;
  EXPECT_FALSE(map.Find(256, &found));
  EXPECT_FALSE(map.Find(0, &found));
  EXPECT_FALSE(map.Find(0xffffffff, &found));
  ASSERT_TRUE(map.Put(Entry(256)));
  ASSERT_TRUE(map.Find(256, &found));
  EXPECT_EQ(found.local_key, 257u);
  map.Remove(256);
  EXPECT_FALSE(map.Find(256, &found));
  map.Remove(256);  // no effect
}

TEST(RegionMapTest, ACacheKnowsWhatHasChanged) {
  RegionMap map;
  RegionCache cache;
  EXPECT_EQ(map.Find(0, cache), nullptr);
  EXPECT_EQ(map.Find(256, cache), nullptr);
  ASSERT_TRUE(map.Put(Entry(256)));
  ASSERT_TRUE(map.Put(Entry(512)));
  ASSERT_NE(map.Find(256, cache), nullptr);
  EXPECT_EQ(map.Find(256, cache)->local_key, 257u);
  EXPECT_EQ(map.Find(512, cache)->local_key, 513u);
  ASSERT_TRUE(map.Put(Entry(512, 8192)));
  EXPECT_EQ(map.Find(512, cache)->address, 8192u);
  map.Remove(512);
  EXPECT_EQ(map.Find(512, cache), nullptr);
  EXPECT_EQ(map.Find(512, cache), nullptr) << "nor by what was left in the cache";
  EXPECT_NE(map.Find(256, cache), nullptr);
}

TEST(RegionMapTest, ManyKeysComeAndGo) {
  RegionMap map;
  RegionEntry found;
  for (int round = 0; round < 3; ++round) {
    for (Key key = 1; key <= RegionMap::kMaxEntries; ++key) {
      ASSERT_TRUE(map.Put(Entry(key << 8 >> (round % 2)))) << key;
    }
    EXPECT_FALSE(map.Put(Entry(0x7fffffff))) << "full";
    for (Key key = 1; key <= RegionMap::kMaxEntries; ++key) {
      ASSERT_TRUE(map.Find(key << 8 >> (round % 2), &found));
      ASSERT_EQ(found.key, key << 8 >> (round % 2));
    }
    for (Key key = 1; key <= RegionMap::kMaxEntries; ++key) {
      map.Remove(key << 8 >> (round % 2));
    }
    ASSERT_FALSE(map.Find(256, &found));
  }
}

// Otherwise the map would fill with removed keys, and a search would find no end.
TEST(RegionMapTest, AKeyThatGoesLeavesNoSlotBehind) {
  constexpr size_t kLive = 20000;
  RegionMap map;
  std::minstd_rand random;
  std::vector<Key> live;
  for (int i = 0; i < 200000; ++i) {
    const Key key = static_cast<Key>(random());
    if (!map.Put(Entry(key))) continue;
    live.push_back(key);
    if (live.size() <= kLive) continue;
    std::swap(live[random() % live.size()], live.back());
    map.Remove(live.back());
    live.pop_back();
  }
  EXPECT_LT(map.UsedSlots(), kLive + kLive / 2);
  RegionEntry found;
  for (Key key : live) EXPECT_TRUE(map.Find(key, &found)) << key;
  for (Key key : live) map.Remove(key);
  EXPECT_EQ(map.UsedSlots(), 0u);
}

TEST(RegionMapTest, RangesDoNotOverflow) {
  const RegionEntry entry = Entry(1, 4096, 100);
  EXPECT_TRUE(entry.Holds(4096, 100, kLocalRead));
  EXPECT_TRUE(entry.Holds(4196, 0, kLocalRead));
  EXPECT_FALSE(entry.Holds(4096, 101, kLocalRead));
  EXPECT_FALSE(entry.Holds(4095, 1, kLocalRead));
  EXPECT_FALSE(entry.Holds(4097, ~uint64_t{0}, kLocalRead));
  EXPECT_FALSE(entry.Holds(4096, 1, kLocalWrite));
}

TEST(RegionMapTest, AReaderSeesOneStateOrTheOther) {
  RegionMap map;
  ASSERT_TRUE(map.Put(Entry(512, 1000, 1000)));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) map.Put(Entry(512, i % 2 ? 2000 : 1000, i % 2 ? 2000 : 1000));
  });
  RegionEntry found;
  uint64_t last = 0;
  for (int changes = 0; changes < 1000;) {
    if (!map.Find(512, &found) || found.address != found.length) {
      ADD_FAILURE() << "address " << found.address << " with length " << found.length;
      break;
    }
    if (std::exchange(last, found.address) != found.address) ++changes;
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace viaduct::verbs::rdma
