// The registered regions and bound windows of one context, by key.
//
// Check() is lock-free and costs about two nanoseconds; it is called for every piece of memory at
// the moment that bytes move, never earlier. Its result holds as long as the caller holds the
// PassLock under which it called Check (a queue pair's send lock, or the inbound lock of its home
// completion queue): Deregister withdraws the key, Modify replaces domain and rights by one store,
// and both then pass every such lock.
//
// Check handles only entries whose addresses are memory addresses. Resolve handles zero-based
// entries, too, and callers use it to try a second domain.
#ifndef VIADUCT_VERBS_SOFT_REGION_TABLE_H_
#define VIADUCT_VERBS_SOFT_REGION_TABLE_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "verbs/base/lock.h"
#include "verbs/base/pass_lock.h"
#include "verbs/device.h"

namespace viaduct::verbs {

// Identifies a protection domain in the checks. kWildcardDomain matches every other, on either
// side. A queue pair has a number of its own: the domain of the windows that only it may use.
using DomainId = uint64_t;  // 48 bits; never reused
inline constexpr DomainId kWildcardDomain = 0;

// What a window is to become.
struct WindowBinding {
  Key region = 0;
  uint64_t address = 0;  // in the region's own addressing
  uint64_t length = 0;
  uint32_t access = 0;
  AddressBase base = AddressBase::kVirtual;
  DomainId domain = 0;  // must be the region's
  DomainId owner = 0;   // who may use the window: `domain`, or a queue pair's number
};

// Why a range is refused; the reasons are checked in this order.
enum class Refusal : uint8_t {
  kKey,     // nothing has that key
  kDomain,  // the key belongs to another domain, or to another pair
  kRights,
  kBounds,
};

class RegionTable {
 public:
  static constexpr uint32_t kMaxRegions = 1 << 16;

  RegionTable();
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Locks whose holders call Check. RemoveUser returns when no Pass uses the lock any more.
  void AddUser(PassLock* lock);
  void RemoveUser(PassLock* lock);

  // ResourceExhausted: kMaxRegions are registered. May throw std::bad_alloc; then nothing has
  // happened. Control path, any thread.
  absl::StatusOr<Key> Register(DomainId domain, uint64_t address, uint64_t length, uint32_t access,
                               AddressBase base = AddressBase::kVirtual);
  // After it has returned, nothing is read or written through `key` nor, if it is a region's,
  // through a window of that region. Called with no lock held; no effect on a key that is not in
  // use.
  void Deregister(Key key);
  // After it has returned, every check sees the new values; before, each check sees either the old
  // or the new ones, never a mix. Ends the windows of the region.
  void Modify(Key key, DomainId domain, uint32_t access);

  // A key for a window, which gives access to nothing until Bind; given back by Deregister.
  absl::StatusOr<Key> ReserveWindow();
  // False: the region is gone, does not contain that range, lacks a right or is in another domain.
  // True without effect if the key was given back meanwhile. Any thread, also under a PassLock.
  bool Bind(Key key, const WindowBinding& binding);
  // Ends the access through a window that belongs to `owner`; its key stays in use until
  // Deregister. False: there is no such window. Lock-free; does not wait for holders of PassLocks.
  bool Invalidate(Key key, DomainId owner);

  // True if [address, address + length) lies in the region, which has all rights of `access`, and
  // the domains match. Overflow-safe for any value; a hostile key is only ever compared.
  bool Check(Key key, uint64_t address, uint64_t length, uint32_t access, DomainId domain) const {
    const Region& region = regions_[key & (kMaxRegions - 1)];
    if (region.key.load(std::memory_order_acquire) != key || key == 0) return false;
    const uint64_t offset = address - region.address.load(std::memory_order_relaxed);
    const uint64_t size = region.length.load(std::memory_order_relaxed);
    const uint64_t grant = region.grant.load(std::memory_order_relaxed);
    return offset <= size && length <= size - offset && (grant & access) == access &&
           Matches(grant, domain);
  }
  // The memory of a range that passes the same checks, or null; zero-based entries included.
  // `access` is not empty.
  unsigned char* Resolve(Key key, uint64_t address, uint64_t length, uint32_t access,
                         DomainId domain) const;
  // Why Resolve has refused `key`; kBounds if no other reason holds.
  Refusal Explain(Key key, uint32_t access, DomainId domain) const;

 private:
  // Key: bits 0-15 index, 16-30 random, never 0. Indices are drawn at random as well.
  struct alignas(64) Region {
    std::atomic<Key> key;  // 0: gives access to nothing
    // Who may do what: bits 0-7 the rights, 8-15 the rights of a zero-based entry (bits 0-7 are
    // then 0, so that Check refuses it), 16-63 the domain.
    std::atomic<uint64_t> grant;
    std::atomic<uint64_t> address;
    std::atomic<uint64_t> length;
    std::atomic<uint64_t> memory;  // where the first byte lies
    // Guarded by mutex_.
    Key issued;  // the key that uses this entry; 0: free
    Key parent;  // of a window: its region
    bool window;
    bool zero;         // addresses count from 0
    uint32_t windows;  // of a region: how many entries have named it as parent
  };

  static uint64_t GrantOf(DomainId domain, uint32_t access, bool zero) {
    static_assert(kRemoteAtomic < 1 << 8);
    return domain << 16 | uint64_t{access} << (zero ? 8 : 0);
  }
  static uint32_t RightsOf(uint64_t grant) { return (grant | grant >> 8) & 0xff; }
  static DomainId DomainOf(uint64_t grant) { return grant >> 16; }
  static bool Matches(uint64_t grant, DomainId domain) {
    const DomainId owner = DomainOf(grant);
    return owner == domain || owner == kWildcardDomain || domain == kWildcardDomain;
  }

  absl::StatusOr<Key> Issue(uint64_t random) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Open(Region& region, Key key, DomainId domain, uint64_t address, uint64_t memory,
            uint64_t length, uint32_t access, AddressBase base);
  // Ends the access through the windows of `key`.
  void CloseWindows(Region& region, Key key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PassUsers();

  Region* regions_;  // kMaxRegions in reserved, zeroed address space; only touched pages cost
  SpinLock mutex_;   // taken under PassLocks: hold it briefly
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
  uint32_t indices_ ABSL_GUARDED_BY(mutex_) = 0;  // indices below it are in use or in free_
  Mutex users_mutex_;
  std::vector<PassLock*> users_ ABSL_GUARDED_BY(users_mutex_);
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_REGION_TABLE_H_
