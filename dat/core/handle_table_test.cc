#include "dat/core/handle_table.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {
namespace {

std::atomic<int> alive{0};
std::atomic<int> revived{0};  // objects that got a reference after their last was dropped

template <ObjectType kObjectType>
class Thing final : public Object {
 public:
  static constexpr ObjectType kType = kObjectType;
  Thing() : Object(kType) { alive.fetch_add(1); }

  uint64_t value = 7;

 private:
  ~Thing() override {
    value = 0;
    if (AddReferenceUnlessZero()) revived.fetch_add(1);
    alive.fetch_sub(1);
  }
};
using Zone = Thing<ObjectType::kProtectionZone>;
using Vi = Thing<ObjectType::kVi>;

// A new object that only the table refers to.
template <typename T>
Handle MakeOwned() {
  const Ref<T> object = Ref<T>::Adopt(new T);
  return HandleTable::Insert(object.get());
}

// What a face does to free an object.
template <typename T>
bool Free(Handle handle) {
  const Ref<T> object = ShareObject<T>(handle);
  if (!object || !HandleTable::Erase(handle, T::kType)) return false;
  object->DropReference();  // the table's
  return true;
}

template <typename T>
bool IsLive(Handle handle) {
  verbs::EpochGuard guard;
  return FindObject<T>(handle) != nullptr;
}

Handle Offset(Handle handle, intptr_t bytes) {
  return reinterpret_cast<Handle>(reinterpret_cast<uintptr_t>(handle) + bytes);
}

// Runs first: no object has been made yet.
TEST(HandleTableEmpty, KnowsNothing) {
  EXPECT_EQ(HandleTable::Size(), 0u);
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{8}, uint64_t{512}, ~uint64_t{0}}) {
    const Handle handle = reinterpret_cast<Handle>(value);
    EXPECT_FALSE(IsLive<Zone>(handle)) << value;
    EXPECT_EQ(HandleTable::TypeOf(handle), ObjectType::kNone) << value;
    EXPECT_FALSE(HandleTable::Erase(handle, ObjectType::kVi)) << value;
  }
}

TEST(HandleTable, FindsWhatWasInserted) {
  const Ref<Zone> zone = Ref<Zone>::Adopt(new Zone);
  EXPECT_EQ(zone->handle(), nullptr);
  const Handle handle = HandleTable::Insert(zone.get());
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(zone->handle(), handle);
  EXPECT_EQ(HandleTable::Size(), 1u);
  EXPECT_EQ(HandleTable::TypeOf(handle), ObjectType::kProtectionZone);
  {
    verbs::EpochGuard guard;
    EXPECT_EQ(FindObject<Zone>(handle), zone.get());
  }
  EXPECT_EQ(ShareObject<Zone>(handle).get(), zone.get());
  EXPECT_TRUE(Free<Zone>(handle));
  EXPECT_EQ(zone->handle(), handle);
  EXPECT_EQ(HandleTable::Size(), 0u);
}

TEST(HandleTable, RefusesAWrongType) {
  const Handle handle = MakeOwned<Zone>();
  EXPECT_FALSE(IsLive<Vi>(handle));
  EXPECT_FALSE(ShareObject<Vi>(handle));
  EXPECT_FALSE(HandleTable::Erase(handle, ObjectType::kVi));
  {
    verbs::EpochGuard guard;
    EXPECT_EQ(HandleTable::Find(handle, ObjectType::kNone), nullptr);
  }
  EXPECT_TRUE(Free<Zone>(handle));
  EXPECT_FALSE(HandleTable::Erase(handle, ObjectType::kNone));
}

TEST(HandleTable, RefusesAFreedHandle) {
  const Handle handle = MakeOwned<Zone>();
  EXPECT_TRUE(Free<Zone>(handle));
  EXPECT_FALSE(IsLive<Zone>(handle));
  EXPECT_FALSE(ShareObject<Zone>(handle));
  EXPECT_EQ(HandleTable::TypeOf(handle), ObjectType::kNone);
  EXPECT_FALSE(HandleTable::Erase(handle, ObjectType::kProtectionZone));
}

TEST(HandleTable, RefusesEveryNeighbour) {
  const Handle handle = MakeOwned<Zone>();
  for (intptr_t bytes = -1100; bytes <= 1100; ++bytes) {
    if (bytes == 0) continue;
    EXPECT_FALSE(IsLive<Zone>(Offset(handle, bytes))) << bytes;
    EXPECT_EQ(HandleTable::TypeOf(Offset(handle, bytes)), ObjectType::kNone) << bytes;
  }
  EXPECT_TRUE(IsLive<Zone>(handle));
  EXPECT_TRUE(Free<Zone>(handle));
}

TEST(HandleTable, RefusesEveryFlippedBit) {
  const Handle handle = MakeOwned<Zone>();
  for (int bit = 0; bit < 64; ++bit) {
    const uintptr_t value = reinterpret_cast<uintptr_t>(handle) ^ uintptr_t { 1 } << bit;
    EXPECT_FALSE(IsLive<Zone>(reinterpret_cast<Handle>(value))) << bit;
  }
  Zone* const object = ShareObject<Zone>(handle).get();
  EXPECT_FALSE(IsLive<Zone>(object));  // the object's own address is no handle
  EXPECT_TRUE(Free<Zone>(handle));
}

TEST(HandleTable, AFreedValueComesBackLateAndInOrder) {
  std::set<Handle> seen;
  for (int i = 0; i < 60 * 1024; ++i) {
    const Handle handle = MakeOwned<Zone>();
    ASSERT_TRUE(seen.insert(handle).second) << i;
    ASSERT_TRUE(Free<Zone>(handle));
  }
  EXPECT_EQ(alive.load(), 0);
  // Slots were reused all the same: about 1024 of them, 512 bytes each.
  const uintptr_t low = reinterpret_cast<uintptr_t>(*seen.begin());
  const uintptr_t high = reinterpret_cast<uintptr_t>(*seen.rbegin());
  EXPECT_LT(high - low, 2048u * 512);
}

TEST(HandleTable, HoldsThousandsAtOnce) {
  std::vector<Handle> handles;
  for (int i = 0; i < 5000; ++i) handles.push_back(MakeOwned<Vi>());
  EXPECT_EQ(std::set<Handle>(handles.begin(), handles.end()).size(), handles.size());
  EXPECT_EQ(HandleTable::Size(), handles.size());
  for (Handle handle : handles) EXPECT_TRUE(Free<Vi>(handle));
  EXPECT_EQ(HandleTable::Size(), 0u);
  EXPECT_EQ(alive.load(), 0);
}

TEST(HandleTable, IsFullAtTheEndAndRecovers) {
  const Ref<Zone> zone = Ref<Zone>::Adopt(new Zone);  // one object under very many handles
  std::vector<Handle> handles;
  while (const Handle handle = HandleTable::Insert(zone.get())) handles.push_back(handle);
  EXPECT_EQ(handles.size(), size_t{1} << 20);
  EXPECT_TRUE(HandleTable::Erase(handles.back(), Zone::kType));
  zone->DropReference();
  handles.pop_back();
  const Handle again = HandleTable::Insert(zone.get());
  EXPECT_NE(again, nullptr);
  handles.push_back(again);
  EXPECT_EQ(HandleTable::Insert(zone.get()), nullptr);
  for (Handle handle : handles) {
    ASSERT_TRUE(HandleTable::Erase(handle, Zone::kType));
    zone->DropReference();
  }
  EXPECT_EQ(HandleTable::Size(), 0u);
}

TEST(HandleTable, OfManyErasersOneWins) {
  for (int round = 0; round < 200; ++round) {
    const Ref<Zone> zone = Ref<Zone>::Adopt(new Zone);
    const Handle handle = HandleTable::Insert(zone.get());
    std::atomic<int> winners{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (HandleTable::Erase(handle, Zone::kType)) winners.fetch_add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners.load(), 1);
    zone->DropReference();  // the table's
  }
}

// Readers look objects up while their owners free them: whatever a reader finds is whole.
TEST(HandleTable, WhatIsFoundInsideAGuardLives) {
  constexpr int kSlotCount = 8;
  std::atomic<Handle> published[kSlotCount] = {};
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::atomic<uint64_t> found{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      for (unsigned i = r; !stop.load(std::memory_order_relaxed); ++i) {
        const Handle handle = published[i % kSlotCount].load(std::memory_order_acquire);
        if (i % 2 == 0) {
          verbs::EpochGuard guard;
          Zone* const zone = FindObject<Zone>(handle);
          if (zone == nullptr) continue;
          found.fetch_add(1, std::memory_order_relaxed);
          if (zone->value != 7) bad.fetch_add(1);
        } else if (const Ref<Zone> zone = ShareObject<Zone>(handle)) {
          found.fetch_add(1, std::memory_order_relaxed);
          if (zone->value != 7) bad.fetch_add(1);
        }
      }
    });
  }
  std::vector<std::thread> owners;
  for (int w = 0; w < 2; ++w) {
    owners.emplace_back([&, w] {
      for (int i = 0; i < 2000 || found.load(std::memory_order_relaxed) == 0; ++i) {
        std::atomic<Handle>& slot = published[(2 * i + w) % kSlotCount];
        const Handle old = slot.exchange(MakeOwned<Zone>(), std::memory_order_acq_rel);
        if (old != nullptr && !Free<Zone>(old)) bad.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : owners) thread.join();
  stop.store(true);
  for (std::thread& thread : readers) thread.join();
  for (std::atomic<Handle>& slot : published) {
    EXPECT_TRUE(slot.load() == nullptr || Free<Zone>(slot.load()));
  }
  EXPECT_EQ(bad.load(), 0);
  EXPECT_EQ(revived.load(), 0);
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(HandleTable::Size(), 0u);
}

TEST(Object, ADyingOneIsNotShared) {
  Zone* const zone = new Zone;
  EXPECT_TRUE(zone->AddReferenceUnlessZero());
  zone->DropReference();
  EXPECT_EQ(alive.load(), 1);
  zone->DropReference();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(revived.load(), 0);
}

// Runs in a child: its exit code says which expectation failed.
int CheckChild(Handle inherited) {
  if (HandleTable::Size() != 0) return 1;
  if (IsLive<Zone>(inherited)) return 2;
  if (HandleTable::Erase(inherited, Zone::kType)) return 3;
  std::set<Handle> seen;
  for (int i = 0; i < 2000; ++i) {
    const Handle handle = MakeOwned<Zone>();
    if (handle == inherited || IsLive<Zone>(inherited)) return 4;
    if (!Free<Zone>(handle)) return 5;
  }
  return 0;
}

TEST(HandleTableFork, TheChildsTableIsEmpty) {
  const Handle handle = MakeOwned<Zone>();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(CheckChild(handle));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(IsLive<Zone>(handle));
  EXPECT_TRUE(Free<Zone>(handle));
}

// The last test: from here on every handle of this process can be read.
TEST(HandleTableShown, AHandleIsTheAddressOfItsWord) {
  static const int first = 0, second = 0;
  const Handle hidden = MakeOwned<Zone>();
  ASSERT_TRUE(HandleTable::ShowFirstWord(&first));
  std::vector<Handle> handles;
  for (int i = 0; i < 5000; ++i) handles.push_back(MakeOwned<Zone>());
  HandleTable::SetFirstWord(handles[7], &second);
  for (size_t i = 0; i < handles.size(); ++i) {
    EXPECT_EQ(*static_cast<const int* const*>(handles[i]), i == 7 ? &second : &first);
  }
  for (Handle handle : handles) EXPECT_TRUE(Free<Zone>(handle));
  EXPECT_EQ(*static_cast<const int* const*>(handles[0]), &first);  // dead, but still safe to read
  EXPECT_TRUE(Free<Zone>(hidden));
}

}  // namespace
}  // namespace viaduct::core
