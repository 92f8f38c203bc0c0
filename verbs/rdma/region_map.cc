#include "verbs/rdma/region_map.h"

#include <algorithm>
#include <new>

#include "verbs/base/back_off.h"
#include "verbs/base/block.h"

namespace viaduct::verbs::rdma {

// A block of that size comes from mmap, which zeroes it.
RegionMap::RegionMap() : slots_(static_cast<Slot*>(AllocateBlock(kSlots * sizeof(Slot)))) {
  if (slots_ == nullptr) throw std::bad_alloc();
}

RegionMap::~RegionMap() { FreeBlock(slots_, kSlots * sizeof(Slot)); }

RegionMap::Slot* RegionMap::Search(Key key) const {
  for (uint32_t i = Hash(key);; ++i) {
    Slot& slot = slots_[i % kSlots];
    const Key there = slot.key.load(std::memory_order_acquire);
    if (there == key) return &slot;
    if (there == 0) return nullptr;
  }
}

bool RegionMap::Put(const RegionEntry& entry) {
  MutexLock lock(&mutex_);
  Slot* slot = Search(entry.key);
  if (slot == nullptr) {
    if (entries_ == kMaxEntries) return false;
    for (uint32_t i = Hash(entry.key);; ++i) {
      slot = &slots_[i % kSlots];
      const Key there = slot->key.load(std::memory_order_relaxed);
      if (there == 0 || there == kRemoved) break;
    }
    ++entries_;
  }
  const uint32_t version = slot->version.load(std::memory_order_relaxed);
  slot->version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot->access.store(entry.access, std::memory_order_relaxed);
  slot->local_key.store(entry.local_key, std::memory_order_relaxed);
  slot->sink_key.store(entry.sink_key, std::memory_order_relaxed);
  slot->domain.store(entry.domain, std::memory_order_relaxed);
  slot->address.store(entry.address, std::memory_order_relaxed);
  slot->length.store(entry.length, std::memory_order_relaxed);
  slot->memory.store(entry.memory, std::memory_order_relaxed);
  slot->key.store(entry.key, std::memory_order_release);
  slot->version.store(version + 2, std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_release);
  return true;
}

void RegionMap::Remove(Key key) {
  MutexLock lock(&mutex_);
  Slot* slot = Search(key);
  if (slot == nullptr) return;
  const uint32_t version = slot->version.load(std::memory_order_relaxed);
  slot->version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot->key.store(kRemoved, std::memory_order_release);
  slot->version.store(version + 2, std::memory_order_release);
  Sweep(Hash(key), static_cast<uint32_t>(slot - slots_));
  changes_.fetch_add(1, std::memory_order_release);
  --entries_;
}

void RegionMap::Sweep(uint32_t first, uint32_t last) {
  uint32_t end = last;
  while (slots_[end % kSlots].key.load(std::memory_order_relaxed) != 0) ++end;
  // How many slots directly before slot i a search for a key in slot i or behind it passes.
  uint32_t needed = 0;
  const uint32_t begin = last - (last - first) % kSlots;
  for (uint32_t i = end; i-- != begin;) {
    std::atomic<Key>& there = slots_[i % kSlots].key;
    const Key key = there.load(std::memory_order_relaxed);
    if (key != kRemoved) {
      needed = std::max(needed > 0 ? needed - 1 : 0, (i - Hash(key)) % kSlots);
    } else if (needed > 0) {
      --needed;
    } else {
      there.store(0, std::memory_order_release);
    }
  }
}

uint32_t RegionMap::UsedSlots() const {
  return static_cast<uint32_t>(
      std::count_if(slots_, slots_ + kSlots, [](const Slot& slot) { return slot.key != 0; }));
}

bool RegionMap::Find(Key key, RegionEntry* entry) const {
  if (key == 0 || key == kRemoved) return false;
  BackOff back_off;
  while (true) {
    Slot* slot = Search(key);
    if (slot == nullptr) return false;
    const uint32_t version = slot->version.load(std::memory_order_acquire);
    entry->key = slot->key.load(std::memory_order_relaxed);
    entry->access = slot->access.load(std::memory_order_relaxed);
    entry->local_key = slot->local_key.load(std::memory_order_relaxed);
    entry->sink_key = slot->sink_key.load(std::memory_order_relaxed);
    entry->domain = slot->domain.load(std::memory_order_relaxed);
    entry->address = slot->address.load(std::memory_order_relaxed);
    entry->length = slot->length.load(std::memory_order_relaxed);
    entry->memory = slot->memory.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version % 2 == 0 && slot->version.load(std::memory_order_relaxed) == version) {
      return entry->key == key;
    }
    back_off.Pause();
  }
}

}  // namespace viaduct::verbs::rdma
