#include "compat/net_address.h"

#include <cstring>

#include "verbs/base/settings.h"

namespace viaduct::compat {
namespace {

constexpr size_t kBytesAt = offsetof(VIP_NET_ADDRESS, HostAddress);

const uint8_t* BytesOf(const VIP_NET_ADDRESS* address) {
  return reinterpret_cast<const uint8_t*>(address) + kBytesAt;
}

uint16_t LengthAt(const VIP_NET_ADDRESS* address, size_t offset) {
  uint16_t length;
  std::memcpy(&length, reinterpret_cast<const uint8_t*>(address) + offset, sizeof length);
  return length;
}

uint16_t HostLength(const VIP_NET_ADDRESS* address) {
  return LengthAt(address, offsetof(VIP_NET_ADDRESS, HostAddressLen));
}

uint16_t DiscriminatorLength(const VIP_NET_ADDRESS* address) {
  return LengthAt(address, offsetof(VIP_NET_ADDRESS, DiscriminatorLen));
}

}  // namespace

NicAddress NicAddressOf(const verbs::Address& address) {
  const uint32_t host = address.v4();
  return {static_cast<uint8_t>(host >> 24),
          static_cast<uint8_t>(host >> 16),
          static_cast<uint8_t>(host >> 8),
          static_cast<uint8_t>(host),
          0,
          0};
}

std::optional<verbs::Address> HostOf(const VIP_NET_ADDRESS* address) {
  if (HostLength(address) != kNicAddressBytes) return std::nullopt;
  const uint8_t* bytes = BytesOf(address);
  const uint32_t host = static_cast<uint32_t>(bytes[0]) << 24 |
                        static_cast<uint32_t>(bytes[1]) << 16 |
                        static_cast<uint32_t>(bytes[2]) << 8 | static_cast<uint32_t>(bytes[3]);
  if (host == 0) return std::nullopt;
  return verbs::Address::V4(host);
}

bool IsLocal(const VIP_NET_ADDRESS* address, const NicAddress& nic) {
  if (HostLength(address) != kNicAddressBytes) return false;
  return std::memcmp(BytesOf(address), nic.data(), kNicAddressBytes) == 0 ||
         verbs::ChoiceSetting(verbs::SettingId::kLocalHost) == "any";
}

std::optional<core::ServiceName> DiscriminatorOf(const VIP_NET_ADDRESS* address) {
  const uint16_t size = DiscriminatorLength(address);
  if (HostLength(address) != kNicAddressBytes || size > core::kMaxNameBytes) return std::nullopt;
  return core::ServiceName::FromBytes(BytesOf(address) + kNicAddressBytes, size);
}

VIP_RETURN ReadRoute(const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote,
                     const NicAddress& nic, Route* out) {
  if (!IsLocal(local, nic)) return VIP_INVALID_ADDRESS;
  const auto local_name = DiscriminatorOf(local);
  const auto remote_name = DiscriminatorOf(remote);
  const auto remote_host = HostOf(remote);
  if (!local_name || !remote_name || !remote_host) return VIP_INVALID_PARAMETER;
  *out = {*local_name, *remote_name, *remote_host};
  return VIP_SUCCESS;
}

void WriteHost(const NicAddress& host, VIP_NET_ADDRESS* out) {
  const uint16_t length = kNicAddressBytes;
  uint8_t* bytes = reinterpret_cast<uint8_t*>(out);
  std::memcpy(bytes + offsetof(VIP_NET_ADDRESS, HostAddressLen), &length, sizeof length);
  std::memcpy(bytes + kBytesAt, host.data(), kNicAddressBytes);
}

void WriteNetAddress(const NicAddress& host, absl::string_view discriminator,
                     VIP_NET_ADDRESS* out) {
  WriteHost(host, out);
  const uint16_t name_length = static_cast<uint16_t>(discriminator.size());
  uint8_t* bytes = reinterpret_cast<uint8_t*>(out);
  std::memcpy(bytes + offsetof(VIP_NET_ADDRESS, DiscriminatorLen), &name_length,
              sizeof name_length);
  if (name_length != 0) {
    std::memcpy(bytes + kBytesAt + kNicAddressBytes, discriminator.data(), name_length);
  }
}

core::ServiceName NameOfPort(uint16_t port) { return core::ServiceName::FromQualifier(port); }

}  // namespace viaduct::compat
