// The registered regions of a NIC, by memory handle.
//
// A post looks up the descriptor's region here, and so does a completion before it writes Status,
// both without a lock, inside a verbs::EpochGuard. Changes take a lock and are visible at once. A
// removal waits until every guard of that moment has been left, so that nothing is written into
// memory after VipDeregisterMem has returned. Registration objects are reused for other regions and
// freed only with the NIC, so whoever remembers one must check its handle.
#ifndef VIADUCT_VIPL_REGISTRATIONS_H_
#define VIADUCT_VIPL_REGISTRATIONS_H_

#include <vipl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "dat/core/memory_region.h"
#include "dat/core/object.h"
#include "verbs/base/lock.h"

namespace viaduct::vipl {

// Tags as VipCreatePtag gives them; NULL passes every check.
inline bool TagsMatch(VIP_PROTECTION_HANDLE a, VIP_PROTECTION_HANDLE b) {
  return a == b || a == nullptr || b == nullptr;
}

struct Registration {
  std::atomic<VIP_MEM_HANDLE> handle{0};  // 0: removed
  uintptr_t begin = 0;
  uintptr_t first_page = 0;  // start of the page of the first byte
  uintptr_t pages_end = 0;
  std::atomic<VIP_PROTECTION_HANDLE> tag{nullptr};
  // Guarded by the lock of Registrations.
  core::Ref<core::MemoryRegion> region;
  VIP_MEM_ATTRIBUTES attributes = {};

  void SetBytes(uintptr_t start, size_t bytes) {
    constexpr uintptr_t kInPage = 4095;
    begin = start;
    first_page = start & ~kInPage;
    pages_end = bytes != 0 ? (start + bytes + kInPage) & ~kInPage : first_page;
  }
  // Whether a descriptor, or its beginning, may lie there: in any page of the region, because old
  // adapters registered whole pages. Programs post some descriptors that lie beside their region.
  bool MayHold(const void* descriptor, size_t bytes) const {
    const uintptr_t at = reinterpret_cast<uintptr_t>(descriptor);
    return at >= first_page && at <= pages_end && pages_end - at >= bytes;
  }
};

class Registrations {
 public:
  Registrations();
  ~Registrations();

  // The registration that a caller found last, since most calls ask for the same one again. Only
  // for children of the NIC.
  using Last = std::atomic<const Registration*>;

  // Inside an EpochGuard; the result is valid as long as the guard. Null: no such handle.
  const Registration* Find(VIP_MEM_HANDLE handle, Last& last) const {
    const Registration* found = last.load(std::memory_order_relaxed);
    if (found != nullptr && handle != 0 && found->handle.load(std::memory_order_acquire) == handle)
        [[likely]] {
      return found;
    }
    found = Find(handle);
    if (found != nullptr) last.store(found, std::memory_order_relaxed);
    return found;
  }
  [[gnu::noinline]] const Registration* Find(VIP_MEM_HANDLE handle) const {
    if (handle == 0) return nullptr;
    const Table& table = *table_.load(std::memory_order_acquire);
    for (size_t i = HashOf(handle) & table.mask;; i = (i + 1) & table.mask) {
      const Registration* found = table.slots[i].load(std::memory_order_acquire);
      if (found == nullptr) return nullptr;
      if (found != Removed() && found->handle.load(std::memory_order_relaxed) == handle) {
        return found;
      }
    }
  }

  // Adds [begin, begin + bytes) as `handle`, the key of `region` if there is one. If it throws
  // std::bad_alloc, nothing has changed.
  void Add(VIP_MEM_HANDLE handle, uintptr_t begin, size_t bytes,
           const VIP_MEM_ATTRIBUTES& attributes, const core::Ref<core::MemoryRegion>& region);
  // False unless `handle` is that of a region that begins at `address`; otherwise sets *region to
  // it.
  bool Remove(VIP_MEM_HANDLE handle, const void* address, core::Ref<core::MemoryRegion>* region);
  // From now on no handle is found. The regions themselves stay until the adapter closes.
  void HideAll();

  // False unless `handle` is that of a region that begins at `address`; otherwise sets *out to the
  // attributes that it was registered with or last updated to.
  bool Query(VIP_MEM_HANDLE handle, const void* address, VIP_MEM_ATTRIBUTES* out);
  // VIP_INVALID_PARAMETER unless `handle` is that of a region that begins at `address`; otherwise
  // the result of `change`, which is called with the region, under the lock. If that is
  // VIP_SUCCESS, the registration has `attributes` from then on; otherwise it keeps its own.
  template <typename Change>
  VIP_RETURN Update(VIP_MEM_HANDLE handle, const void* address,
                    const VIP_MEM_ATTRIBUTES& attributes, const Change& change) {
    const verbs::MutexLock hold(&lock_);
    Registration* registration = Owned(handle, address);
    if (registration == nullptr) return VIP_INVALID_PARAMETER;
    const VIP_RETURN result = change(*registration->region);
    if (result != VIP_SUCCESS) return result;
    registration->attributes = attributes;
    registration->tag.store(attributes.Ptag, std::memory_order_relaxed);
    return VIP_SUCCESS;
  }

 private:
  // Open addressing with linear probing; an empty place ends a search, a removed one does not.
  struct Table {
    explicit Table(size_t places) : mask(places - 1), slots(places) {}
    size_t mask;
    std::vector<std::atomic<Registration*>> slots;
  };

  // What a removed registration leaves behind, so that searches go on.
  static Registration* Removed() {
    alignas(Registration) static constinit char place = 0;
    return reinterpret_cast<Registration*>(&place);
  }
  static bool IsLive(const Registration* registration) {
    return registration != nullptr && registration != Removed();
  }
  static size_t HashOf(VIP_MEM_HANDLE handle) { return (handle * 0x9e3779b97f4a7c15ull) >> 32; }

  Registration* Owned(VIP_MEM_HANDLE handle, const void* address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void Place(Table& table, Registration* registration) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Makes the one in `slot` impossible to find. It can be reused once every guard of now has been
  // left.
  void Clear(std::atomic<Registration*>& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  mutable verbs::Mutex lock_;
  std::atomic<Table*> table_;  // written under the lock
  size_t live_ ABSL_GUARDED_BY(lock_) = 0;
  size_t used_ ABSL_GUARDED_BY(lock_) = 0;  // places that are not empty
  std::vector<std::unique_ptr<Registration>> all_ ABSL_GUARDED_BY(lock_);
  std::vector<Registration*> free_ ABSL_GUARDED_BY(lock_);  // has capacity for all of all_
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_REGISTRATIONS_H_
