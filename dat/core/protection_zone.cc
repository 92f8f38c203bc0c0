#include "dat/core/protection_zone.h"

#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::core {

Error ProtectionZone::Create(InterfaceAdapter& adapter, bool wildcard, Ref<ProtectionZone>* out) {
  auto domain = adapter.context().CreateDomain(wildcard);
  if (!domain.ok()) return OutOf(Resource::kZone);
  auto zone = Ref<ProtectionZone>::Adopt(new ProtectionZone(adapter, *std::move(domain)));
  if (Error error = adapter.AddChild(zone.get()); !error.ok()) return error;
  *out = std::move(zone);
  return Ok();
}

ProtectionZone::ProtectionZone(InterfaceAdapter& adapter,
                               std::unique_ptr<verbs::ProtectionDomain> domain)
    : Object(kType), adapter_(Ref<InterfaceAdapter>::Share(&adapter)), domain_(std::move(domain)) {}

ProtectionZone::~ProtectionZone() = default;

Error ProtectionZone::Free() {
  if (!uses_.End()) return InvalidState(StateDetail::kZoneInUse);
  return End();
}

void ProtectionZone::Destroy() { (void)End(); }

Error ProtectionZone::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<ProtectionZone>();
  adapter_->RemoveChild(this);
  DropReference();
  return Ok();
}

}  // namespace viaduct::core
