// The registered regions of one context, by key.
//
// Check() is lock-free and costs about two nanoseconds; it is called for every piece of memory at
// the moment that bytes move, never earlier. What it says holds as long as the caller holds the
// PassLock under which it asked (a queue pair's send lock, or the inbound lock of its home
// completion queue): Deregister and Modify withdraw first and then pass every such lock.
#ifndef VIADUCT_VERBS_SOFT_REGION_TABLE_H_
#define VIADUCT_VERBS_SOFT_REGION_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/soft/pass_lock.h"

namespace viaduct::verbs {

// Names a protection domain in the checks. kWildcardDomain matches every other, on either side.
using DomainId = uint32_t;
inline constexpr DomainId kWildcardDomain = 0;

class RegionTable {
 public:
  static constexpr uint32_t kMaxRegions = 1 << 16;

  RegionTable();
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Locks whose holders call Check. Remove returns when no Pass uses the lock any more.
  void AddUser(PassLock* lock);
  void RemoveUser(PassLock* lock);

  // ResourceExhausted: kMaxRegions are registered. Control path, any thread.
  absl::StatusOr<Key> Register(DomainId domain, uint64_t address, uint64_t length, uint32_t access);
  // After it returned nothing is read or written through `key`. Called with no lock held.
  void Deregister(Key key);
  // After it returned every check meets the new values.
  void Modify(Key key, DomainId domain, uint32_t access);

  // True if [address, address + length) lies in the region, which has all rights of `access`, and
  // the domains match. Overflow-safe for any value; a hostile key is only ever compared.
  bool Check(Key key, uint64_t address, uint64_t length, uint32_t access, DomainId domain) const {
    const Region& region = regions_[key & (kMaxRegions - 1)];
    if (region.key.load(std::memory_order_acquire) != key || key == 0) return false;
    const uint64_t offset = address - region.address.load(std::memory_order_relaxed);
    const uint64_t size = region.length.load(std::memory_order_relaxed);
    const DomainId owner = region.domain.load(std::memory_order_relaxed);
    return offset <= size && length <= size - offset &&
           (region.access.load(std::memory_order_relaxed) & access) == access &&
           (owner == domain || owner == kWildcardDomain || domain == kWildcardDomain);
  }

 private:
  // Key: bits 0-15 index, 16-30 random, never 0. Indices are drawn at random as well.
  struct Region {
    std::atomic<Key> key;  // 0: free
    std::atomic<uint32_t> access;
    std::atomic<DomainId> domain;
    std::atomic<uint64_t> address;
    std::atomic<uint64_t> length;
  };

  void PassUsers();

  Region* regions_;  // kMaxRegions of reserved, zeroed address space; touched pages count
  Mutex mutex_;
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
  uint32_t indices_ ABSL_GUARDED_BY(mutex_) = 0;  // below it: in use, or in free_
  Mutex users_mutex_;
  std::vector<PassLock*> users_ ABSL_GUARDED_BY(users_mutex_);
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_REGION_TABLE_H_
