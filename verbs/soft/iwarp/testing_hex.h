#ifndef VIADUCT_VERBS_SOFT_IWARP_TESTING_HEX_H_
#define VIADUCT_VERBS_SOFT_IWARP_TESTING_HEX_H_

#include <cctype>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// For tests: bytes written as hexadecimal digits with any spaces between them, and back.

namespace viaduct::verbs::iwarp {

inline std::vector<uint8_t> FromHex(std::string_view text) {
  std::vector<uint8_t> bytes;
  int digits = 0;
  unsigned value = 0;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c))) continue;
    value = value << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    if (++digits % 2 == 0) {
      bytes.push_back(static_cast<uint8_t>(value));
      value = 0;
    }
  }
  return bytes;
}

inline std::string ToHex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

inline std::vector<uint8_t> FromText(std::string_view text) {
  return std::vector<uint8_t>(text.begin(), text.end());
}

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TESTING_HEX_H_
