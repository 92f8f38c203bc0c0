#include "verbs/base/address.h"

#include <arpa/inet.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace viaduct::verbs {
namespace {

// An IPv4-mapped IPv6 address, ::ffff:a.b.c.d, is the same host (RFC 4291 2.5.5.2).
Address FromMapped(const in6_addr& mapped) {
  uint32_t v4;
  std::memcpy(&v4, &mapped.s6_addr[12], sizeof(v4));
  return Address::V4(ntohl(v4));
}

}  // namespace

Address Address::V4(uint32_t host_order) {
  Address address;
  address.storage_.v4.sin_family = AF_INET;
  address.storage_.v4.sin_addr.s_addr = htonl(host_order);
  return address;
}

std::optional<Address> Address::FromSockaddr(const sockaddr* address, socklen_t length) {
  sa_family_t family;
  if (address == nullptr || length < offsetof(sockaddr, sa_family) + sizeof(family)) {
    return std::nullopt;
  }
  std::memcpy(&family, &address->sa_family, sizeof(family));
  Address result;
  if (family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof(v4));
    result.storage_.v4.sin_family = AF_INET;
    result.storage_.v4.sin_addr = v4.sin_addr;
    return result;
  }
  if (family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof(v6));
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return FromMapped(v6.sin6_addr);
    result.storage_.v6.sin6_family = AF_INET6;
    result.storage_.v6.sin6_addr = v6.sin6_addr;
    result.storage_.v6.sin6_scope_id = v6.sin6_scope_id;
    return result;
  }
  return std::nullopt;
}

std::optional<Address> Address::Parse(absl::string_view text) {
  const std::string copy(text);
  if (copy.size() != std::strlen(copy.c_str())) return std::nullopt;
  Address result;
  if (inet_pton(AF_INET, copy.c_str(), &result.storage_.v4.sin_addr) == 1) {
    result.storage_.v4.sin_family = AF_INET;
    return result;
  }
  if (inet_pton(AF_INET6, copy.c_str(), &result.storage_.v6.sin6_addr) == 1) {
    const in6_addr v6 = result.storage_.v6.sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) return FromMapped(v6);
    result.storage_.v6.sin6_family = AF_INET6;
    return result;
  }
  return std::nullopt;
}

bool Address::IsLoopback() const {
  if (family() == AF_INET) return v4() >> 24 == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

bool Address::IsUnspecified() const {
  if (family() == AF_INET) return v4() == 0;
  if (family() == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr);
  return true;
}

uint32_t Address::v4() const {
  return family() == AF_INET ? ntohl(storage_.v4.sin_addr.s_addr) : 0;
}

socklen_t Address::ToSockaddr(uint16_t port, sockaddr_storage* out) const {
  std::memset(out, 0, sizeof(*out));
  Storage copy = storage_;
  switch (family()) {
    case AF_INET:
      copy.v4.sin_port = htons(port);
      std::memcpy(out, &copy.v4, sizeof(copy.v4));
      return sizeof(copy.v4);
    case AF_INET6:
      copy.v6.sin6_port = htons(port);
      std::memcpy(out, &copy.v6, sizeof(copy.v6));
      return sizeof(copy.v6);
    default:
      return 0;
  }
}

std::string Address::ToString() const {
  char text[INET6_ADDRSTRLEN];
  if (family() == AF_INET) {
    return inet_ntop(AF_INET, &storage_.v4.sin_addr, text, sizeof(text));
  }
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &storage_.v6.sin6_addr, text, sizeof(text));
    const uint32_t scope = storage_.v6.sin6_scope_id;
    return scope == 0 ? text : absl::StrCat(text, "%", scope);
  }
  return "unspecified";
}

bool operator==(const Address& a, const Address& b) {
  if (a.family() != b.family()) return false;
  if (a.family() == AF_INET) {
    return a.storage_.v4.sin_addr.s_addr == b.storage_.v4.sin_addr.s_addr;
  }
  if (a.family() == AF_INET6) {
    return IN6_ARE_ADDR_EQUAL(&a.storage_.v6.sin6_addr, &b.storage_.v6.sin6_addr) &&
           a.storage_.v6.sin6_scope_id == b.storage_.v6.sin6_scope_id;
  }
  return true;
}

Address LoopbackOf(const Address& address) {
  return *Address::Parse(address.family() == AF_INET6 ? "::1" : "127.0.0.1");
}

}  // namespace viaduct::verbs
