// The network interfaces of this host, as far as they have an address.
//
// Threads: any. Nothing is kept: each call asks the kernel, and fails where there is no descriptor
// or memory to ask with (absl::StatusCode::kResourceExhausted; a line is logged).
#ifndef VIADUCT_VERBS_BASE_INTERFACES_H_
#define VIADUCT_VERBS_BASE_INTERFACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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

// By index; of one interface IPv4 first, else in the kernel's order. Empty in a sandbox where
// nobody may ask (a line is logged).
absl::StatusOr<std::vector<Interface>> ListInterfaces();

// The first address of that interface, up or not. NotFound: there is no such interface.
absl::StatusOr<Address> InterfaceAddress(absl::string_view name);

// The IPv4 address of the default route's interface, or 127.0.0.1.
absl::StatusOr<Address> DefaultAddress();

namespace internal {

// The interface of the best default route in a table written like /proc/net/route; empty if none.
std::string DefaultRouteInterface(absl::string_view table);

}  // namespace internal

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_INTERFACES_H_
