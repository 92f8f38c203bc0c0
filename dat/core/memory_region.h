// MemoryRegion: DAT's LMR, VIPL's registered memory.
#ifndef VIADUCT_DAT_CORE_MEMORY_REGION_H_
#define VIADUCT_DAT_CORE_MEMORY_REGION_H_

#include <memory>

#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/protection_zone.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class MemoryRegion final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kMemoryRegion;

  // `access` is a set of verbs::Access. Length 0 or address null: kInvalidParameter.
  static Error Create(InterfaceAdapter& adapter, ProtectionZone& zone, void* address,
                      uint64_t length, uint32_t access, Ref<MemoryRegion>* out);
  // Nothing is read or written through the key after it returned.
  Error Free();
  void Destroy() override;
  Error Modify(ProtectionZone& zone, uint32_t access);

  InterfaceAdapter& adapter() const { return *adapter_; }
  verbs::Key key() const { return key_; }
  void* address() const { return address_; }
  uint64_t length() const { return length_; }
  Ref<ProtectionZone> zone() const;
  uint32_t access() const;

 private:
  MemoryRegion(InterfaceAdapter& adapter, ProtectionZone& zone, void* address, uint64_t length,
               uint32_t access, std::unique_ptr<verbs::MemoryRegion> region);
  ~MemoryRegion() override;

  const Ref<InterfaceAdapter> adapter_;
  void* const address_;
  const uint64_t length_;
  const verbs::Key key_;
  mutable verbs::Mutex lock_;
  Ref<ProtectionZone> zone_ ABSL_GUARDED_BY(lock_);
  uint32_t access_ ABSL_GUARDED_BY(lock_);
  std::unique_ptr<verbs::MemoryRegion> region_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_MEMORY_REGION_H_
