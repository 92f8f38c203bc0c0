// An IPv4 or IPv6 host address. Ports travel beside it, never inside it.
#ifndef VIADUCT_VERBS_BASE_ADDRESS_H_
#define VIADUCT_VERBS_BASE_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace viaduct::verbs {

class Address {
 public:
  Address() = default;  // unspecified; family() is AF_UNSPEC
  static Address V4(uint32_t host_order);
  // Null for another family or a truncated structure. The port inside is ignored. An IPv4-mapped
  // IPv6 address becomes the IPv4 address, here and in Parse.
  static std::optional<Address> FromSockaddr(const sockaddr* address, socklen_t length);
  // "192.0.2.1" or "2001:db8::1"; null for anything else (no name is looked up).
  static std::optional<Address> Parse(absl::string_view text);

  sa_family_t family() const { return storage_.any.sa_family; }
  bool IsLoopback() const;
  bool IsUnspecified() const;
  // The IPv4 address in host byte order; 0 for other families.
  uint32_t v4() const;
  // Puts in `port` (host byte order), too; returns the structure's length.
  socklen_t ToSockaddr(uint16_t port, sockaddr_storage* out) const;
  // Valid as long as *this; port 0. For the faces, which show addresses as sockaddr.
  const sockaddr* data() const { return &storage_.any; }
  // Ends with the scope's number if there is one: fe80::1%2.
  std::string ToString() const;

  friend bool operator==(const Address& a, const Address& b);
  friend bool operator!=(const Address& a, const Address& b) { return !(a == b); }

 private:
  union Storage {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  Storage storage_ = {};
};

// 127.0.0.1, or ::1 for an IPv6 address.
Address LoopbackOf(const Address& address);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ADDRESS_H_
