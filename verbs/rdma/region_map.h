// The keys of one context: what a key of verbs/device.h opens here, and the device's local key for
// it. Every segment that is posted is looked up here, without a lock.
#ifndef VIADUCT_VERBS_RDMA_REGION_MAP_H_
#define VIADUCT_VERBS_RDMA_REGION_MAP_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

struct RegionEntry {
  Key key = 0;
  uint32_t access = 0;
  uint32_t local_key = 0;        // the device's
  uint32_t sink_key = 0;         // open to the peer, for a read's sink; 0: there is none yet
  const void* domain = nullptr;  // whose registration that is
  uint64_t address = 0;          // as its users count
  uint64_t length = 0;
  uint64_t memory = 0;  // where the first byte lies

  bool Holds(uint64_t at, uint64_t size, uint32_t rights) const {
    const uint64_t offset = at - address;
    return offset <= length && size <= length - offset && (access & rights) == rights;
  }
  unsigned char* MemoryAt(uint64_t at) const {
    return reinterpret_cast<unsigned char*>(memory + (at - address));
  }
};

// The entry that was found last, for a queue that mostly uses one region. Under its user's lock.
struct RegionCache {
  uint64_t changes = 0;
  RegionEntry entry;
};

class RegionMap {
 public:
  static constexpr uint32_t kMaxEntries = 1 << 15;

  RegionMap();
  ~RegionMap();
  RegionMap(const RegionMap&) = delete;
  RegionMap& operator=(const RegionMap&) = delete;

  // Sets what the entry's key opens from now on. False: the map is full.
  bool Put(const RegionEntry& entry);
  void Remove(Key key);
  // False: no such key. Any thread, lock-free.
  bool Find(Key key, RegionEntry* entry) const;
  // How many slots a search may have to pass: for tests.
  uint32_t UsedSlots() const;
  // As Find, with null for false, but without a search if nothing has changed and the key is that
  // of the last call.
  const RegionEntry* Find(Key key, RegionCache& cache) const {
    if (cache.changes == changes_.load(std::memory_order_acquire) && cache.entry.key == key)
        [[likely]] {
      return &cache.entry;
    }
    return FindAnew(key, cache);
  }

 private:
  static constexpr uint32_t kSlots = 2 * kMaxEntries;
  static constexpr Key kRemoved = 0xffffffff;  // keys end at 0x7fffffff

  // A sequence lock: odd while it changes.
  struct Slot {
    std::atomic<uint32_t> version;
    std::atomic<Key> key;  // 0: unused, and a search ends here
    std::atomic<uint32_t> access;
    std::atomic<uint32_t> local_key;
    std::atomic<uint32_t> sink_key;
    std::atomic<const void*> domain;
    std::atomic<uint64_t> address;
    std::atomic<uint64_t> length;
    std::atomic<uint64_t> memory;
  };

  [[gnu::noinline]] const RegionEntry* FindAnew(Key key, RegionCache& cache) const {
    const uint64_t changes = changes_.load(std::memory_order_acquire);
    cache.changes = 0;
    if (!Find(key, &cache.entry)) return nullptr;
    cache.changes = changes;
    return &cache.entry;
  }
  static uint32_t Hash(Key key) { return (key * 2654435761u) >> 16; }  // 16 bits
  Slot* Search(Key key) const;
  // Empties those removed slots from `first` to `last`, and on to the end of their chain, that no
  // search passes any more. Otherwise the map would fill with them, and a search would never end.
  void Sweep(uint32_t first, uint32_t last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> changes_{1};
  Slot* slots_;  // reserved and zeroed; only touched pages take memory
  Mutex mutex_;
  uint32_t entries_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_REGION_MAP_H_
