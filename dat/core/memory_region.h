// MemoryRegion: DAT's LMR, VIPL's registered memory.
#ifndef VIADUCT_DAT_CORE_MEMORY_REGION_H_
#define VIADUCT_DAT_CORE_MEMORY_REGION_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/protection_zone.h"
#include "dat/core/use.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class MemoryRegion final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kMemoryRegion;

  // `access` is a set of verbs::Access. Length 0 or address null: kInvalidParameter.
  static Error Create(InterfaceAdapter& adapter, ProtectionZone& zone, void* address,
                      uint64_t length, uint32_t access, Ref<MemoryRegion>* out) {
    return Create(adapter, zone, address, length, access, verbs::AddressBase::kVirtual, out);
  }
  static Error Create(InterfaceAdapter& adapter, ProtectionZone& zone, void* address,
                      uint64_t length, uint32_t access, verbs::AddressBase base,
                      Ref<MemoryRegion>* out);
  // After the return nothing is read or written through the key. kInvalidState while a window is
  // bound to the region.
  Error Free();
  void Destroy() override;
  // kInsufficientResources: the region is as before.
  Error Modify(ProtectionZone& zone, uint32_t access);

  InterfaceAdapter& adapter() const { return *adapter_; }
  verbs::Key key() const { return key_; }
  void* address() const { return address_; }
  uint64_t length() const { return length_; }
  verbs::AddressBase base() const { return base_; }
  // Whether the range lies inside; `address` is in the region's AddressBase, base().
  bool Holds(uint64_t address, uint64_t length) const;
  Ref<ProtectionZone> zone() const;
  uint32_t access() const;

  // DAT's cookie of memory that processes share: 40 bytes, all of them significant. Null: memory
  // that is not shared. Set before anybody else knows the region.
  static constexpr size_t kSharedNameBytes = 40;
  void SetSharedName(const char (&name)[kSharedNameBytes]) {
    std::memcpy(shared_name_, name, kSharedNameBytes);
    has_shared_name_ = true;
  }
  const char* shared_name() const { return has_shared_name_ ? shared_name_ : nullptr; }

  UseCount& uses() { return uses_; }  // by windows that are bound to it

 private:
  MemoryRegion(InterfaceAdapter& adapter, Use<ProtectionZone> zone, void* address, uint64_t length,
               uint32_t access, verbs::AddressBase base,
               std::unique_ptr<verbs::MemoryRegion> region);
  ~MemoryRegion() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it

  const Ref<InterfaceAdapter> adapter_;
  void* const address_;
  const uint64_t length_;
  const verbs::AddressBase base_;
  const verbs::Key key_;
  UseCount uses_;
  bool has_shared_name_ = false;
  char shared_name_[kSharedNameBytes] = {};
  mutable verbs::Mutex lock_;
  Ref<ProtectionZone> zone_ ABSL_GUARDED_BY(lock_);
  Use<ProtectionZone> zone_use_ ABSL_GUARDED_BY(lock_);  // until the region ends
  uint32_t access_ ABSL_GUARDED_BY(lock_);
  std::unique_ptr<verbs::MemoryRegion> region_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_MEMORY_REGION_H_
