// From an entry to the address that its adapter is opened at.
#include "dat/registry/registry.h"
#include "verbs/base/interfaces.h"

namespace viaduct::registry {

core::Error AddressOf(const Entry& entry, verbs::Address* address) {
  if (entry.interface.empty()) {
    *address = verbs::DefaultAddress();
    return core::Ok();
  }
  std::optional<verbs::Address> found = verbs::Address::Parse(entry.interface);
  if (!found) found = verbs::InterfaceAddress(entry.interface);
  if (!found) return core::Code::kNotFound;
  *address = *found;
  return core::Ok();
}

}  // namespace viaduct::registry
