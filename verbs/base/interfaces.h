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
  std::string label;   // the name, or that of an alias ("eth0:1") for its IPv4 address
  uint32_t index = 0;  // the kernel's, from 1
  Address address;
  bool loopback = false;
  bool up = false;
};

using Interfaces = std::vector<Interface>;

// Sorted by index, the addresses of an interface with IPv4 first and else in the kernel's order.
// Null if descriptors or memory to ask the kernel are short now. A sandbox without netlink yields
// only IPv4 addresses, and none where it may not ask at all. Each of these cases is logged.
std::optional<Interfaces> ListInterfaces();

// Whether one of the interfaces has that address, up or not.
bool HasAddress(const Interfaces& interfaces, const Address& address);

// The first address of that interface, up or not, or of that alias; null: there is none. IPv4 comes
// first, and an address without an alias of its own before one with it.
std::optional<Address> InterfaceAddress(const Interfaces& interfaces, absl::string_view name);

// The address of the interface of the IPv4 default route, or 127.0.0.1. Null as in ListInterfaces.
std::optional<Address> DefaultAddress(const Interfaces& interfaces);

namespace internal {

// What ListInterfaces does where there is no netlink.
std::optional<Interfaces> ListIpv4Interfaces();

// The interface of the best default route in a table written like /proc/net/route; empty if none.
std::string DefaultRouteInterface(absl::string_view table);

}  // namespace internal

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_INTERFACES_H_
