// The network interfaces of this host, as far as they have an address.
//
// Threads: any. Nothing is kept: each call asks the kernel.
#ifndef VIADUCT_VERBS_BASE_INTERFACES_H_
#define VIADUCT_VERBS_BASE_INTERFACES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "verbs/base/address.h"

namespace viaduct::verbs {

// One address of one interface.
struct Interface {
  std::string name;
  uint32_t index = 0;  // the kernel's, from 1
  Address address;
  bool loopback = false;
  bool up = false;
};

// By index; of one interface IPv4 first, else in the kernel's order. Empty if the kernel does not
// answer (a line is logged).
std::vector<Interface> ListInterfaces();

// The first address of that interface, up or not; null if there is no such interface.
std::optional<Address> InterfaceAddress(absl::string_view name);

// The IPv4 address of the default route's interface, or 127.0.0.1.
Address DefaultAddress();

namespace internal {

// The interface of the best default route in a table written like /proc/net/route; empty if none.
std::string DefaultRouteInterface(absl::string_view table);

}  // namespace internal

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_INTERFACES_H_
