// ServiceName: the name that a connection request asks for, in one form for both faces.
//
// A DAT qualifier and the 8-byte VIPL discriminator that is its big-endian form are the same name,
// so that programs of both faces can connect to each other.
#ifndef VIADUCT_DAT_CORE_SERVICE_NAME_H_
#define VIADUCT_DAT_CORE_SERVICE_NAME_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace viaduct::core {

inline constexpr size_t kMaxNameBytes = 16;  // VIPL's MaxDiscriminatorLen

class ServiceName {
 public:
  ServiceName() = default;  // empty: a discriminator of no bytes
  static ServiceName FromQualifier(uint64_t qualifier);
  // Null if longer than kMaxNameBytes.
  static std::optional<ServiceName> FromBytes(const void* bytes, size_t size);

  absl::string_view bytes() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes_.data()), size_);
  }
  // The name as a qualifier, if it has 8 bytes.
  std::optional<uint64_t> qualifier() const;
  // A qualifier of 1024..65535 is that TCP port itself, and private data travels unmodified.
  std::optional<uint16_t> direct_port() const;
  // The ports to try, in this order: only the direct port if there is one; otherwise `count`
  // distinct ports of [base, base + range), from a hash of the name that all builds compute alike.
  std::vector<uint16_t> Ports(uint16_t base, uint16_t range, size_t count = 16) const;
  // The hashed ports even if there is a direct one: where two peers of a peer-to-peer connection
  // try to reach each other.
  std::vector<uint16_t> HashedPorts(uint16_t base, uint16_t range, size_t count = 16) const;
  std::string ToString() const;  // for logs: "45248" or "0a:00:..."

  friend bool operator==(const ServiceName& a, const ServiceName& b) {
    return a.bytes() == b.bytes();
  }
  template <typename H>
  friend H AbslHashValue(H h, const ServiceName& name) {
    return H::combine(std::move(h), name.bytes());
  }

 private:
  std::array<uint8_t, kMaxNameBytes> bytes_ = {};
  uint8_t size_ = 0;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_SERVICE_NAME_H_
