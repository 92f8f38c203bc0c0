// ProtectionZone: DAT's PZ, VIPL's protection tag.
#ifndef VIADUCT_DAT_CORE_PROTECTION_ZONE_H_
#define VIADUCT_DAT_CORE_PROTECTION_ZONE_H_

#include <memory>

#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/use.h"
#include "verbs/device.h"

namespace viaduct::core {

class InterfaceAdapter;

class ProtectionZone final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kProtectionZone;

  // `wildcard`: the zone matches every other one (VIPL's NULL tag).
  static Error Create(InterfaceAdapter& adapter, bool wildcard, Ref<ProtectionZone>* out);
  // kInvalidState while an endpoint, region, window or shared receive queue uses it.
  Error Free();
  void Destroy() override;

  InterfaceAdapter& adapter() const { return *adapter_; }
  verbs::ProtectionDomain& domain() { return *domain_; }
  UseCount& uses() { return uses_; }

 private:
  ProtectionZone(InterfaceAdapter& adapter, std::unique_ptr<verbs::ProtectionDomain> domain);
  ~ProtectionZone() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it

  const Ref<InterfaceAdapter> adapter_;
  const std::unique_ptr<verbs::ProtectionDomain> domain_;
  UseCount uses_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_PROTECTION_ZONE_H_
