#include "dat/core/service_name.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace viaduct::core {
namespace {

constexpr size_t kQualifierBytes = 8;
constexpr uint64_t kFirstDirect = 1024;
constexpr uint64_t kLastDirect = 65535;

// FNV-1a, then the last step of MurmurHash3, so that all bits depend on all bytes (FORMAT.md).
uint64_t Hash(absl::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325;
  for (char c : bytes) {
    h ^= static_cast<uint8_t>(c);
    h *= 0x100000001b3;
  }
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

}  // namespace

ServiceName ServiceName::FromQualifier(uint64_t qualifier) {
  ServiceName name;
  name.size_ = kQualifierBytes;
  for (size_t i = 0; i < kQualifierBytes; ++i) {
    name.bytes_[i] = static_cast<uint8_t>(qualifier >> (8 * (kQualifierBytes - 1 - i)));
  }
  return name;
}

std::optional<ServiceName> ServiceName::FromBytes(const void* bytes, size_t size) {
  if (size > kMaxNameBytes) return std::nullopt;
  ServiceName name;
  name.size_ = static_cast<uint8_t>(size);
  if (size > 0) std::memcpy(name.bytes_.data(), bytes, size);
  return name;
}

std::optional<uint64_t> ServiceName::qualifier() const {
  if (size_ != kQualifierBytes) return std::nullopt;
  uint64_t qualifier = 0;
  for (size_t i = 0; i < kQualifierBytes; ++i) qualifier = qualifier << 8 | bytes_[i];
  return qualifier;
}

std::optional<uint16_t> ServiceName::direct_port() const {
  const std::optional<uint64_t> port = qualifier();
  if (!port || *port < kFirstDirect || *port > kLastDirect) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

std::vector<uint16_t> ServiceName::Ports(uint16_t base, uint16_t range, size_t count) const {
  if (const std::optional<uint16_t> direct = direct_port()) return {*direct};
  return HashedPorts(base, range, count);
}

std::vector<uint16_t> ServiceName::HashedPorts(uint16_t base, uint16_t range, size_t count) const {
  const uint32_t size = std::min<uint32_t>(range, 0x10000 - base);
  std::vector<uint16_t> ports;
  if (size == 0) return ports;
  const uint64_t hash = Hash(bytes());
  uint32_t place = static_cast<uint32_t>(hash) % size;
  // Without a common divisor the sequence visits every port once before it repeats.
  uint32_t stride = 1 + static_cast<uint32_t>(hash >> 32) % size;
  while (std::gcd(stride, size) != 1) ++stride;
  for (size_t i = 0; i < std::min<size_t>(count, size); ++i) {
    ports.push_back(static_cast<uint16_t>(base + place));
    place = (place + stride) % size;
  }
  return ports;
}

std::string ServiceName::ToString() const {
  if (const std::optional<uint64_t> number = qualifier()) return absl::StrCat(*number);
  if (size_ == 0) return "empty";
  return absl::StrJoin(bytes(), ":", [](std::string* out, char c) {
    absl::StrAppend(out, absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
  });
}

}  // namespace viaduct::core
