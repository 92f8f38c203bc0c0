// VIP_NET_ADDRESS: a NIC address of six bytes (IPv4 address, two bytes of NIC instance, both in
// network order; the instance is 0), then the discriminator.
//
// Programs keep addresses in char buffers of any alignment, so nothing here relies on alignment.
#ifndef VIADUCT_COMPAT_NET_ADDRESS_H_
#define VIADUCT_COMPAT_NET_ADDRESS_H_

#include <vipl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "dat/core/service_name.h"
#include "verbs/base/address.h"

namespace viaduct::compat {

inline constexpr size_t kNicAddressBytes = 6;
using NicAddress = std::array<uint8_t, kNicAddressBytes>;

NicAddress NicAddressOf(const verbs::Address& address);

// Null unless the host part has six bytes and an IPv4 address other than 0.0.0.0.
std::optional<verbs::Address> HostOf(const VIP_NET_ADDRESS* address);
// Whether a call that concerns this NIC may have `address` as its LocalAddr. The host part must be
// the NIC's own or, if VIADUCT_LOCAL_HOST is "any", any six bytes.
bool IsLocal(const VIP_NET_ADDRESS* address, const NicAddress& nic);
// Null if the discriminator is longer than MaxDiscriminatorLen, or if the host part does not have
// six bytes: its length says where the discriminator begins.
std::optional<core::ServiceName> DiscriminatorOf(const VIP_NET_ADDRESS* address);

// What the two addresses of a call that connects say.
struct Route {
  core::ServiceName local_name;
  core::ServiceName remote_name;
  verbs::Address remote_host;
};
// VIP_INVALID_ADDRESS: `local` is not the NIC's. Otherwise VIP_INVALID_PARAMETER: a name or the
// host of `remote` is malformed.
VIP_RETURN ReadRoute(const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote,
                     const NicAddress& nic, Route* out);

// Writes only the host's length and bytes; the caller's discriminator stays as it is.
void WriteHost(const NicAddress& host, VIP_NET_ADDRESS* out);
// Writes exactly 4 + 6 + discriminator.size() bytes.
void WriteNetAddress(const NicAddress& host, absl::string_view discriminator, VIP_NET_ADDRESS* out);

// The name shown for a requester without a discriminator: the port that it called from.
core::ServiceName NameOfPort(uint16_t port);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NET_ADDRESS_H_
