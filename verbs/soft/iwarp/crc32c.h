#ifndef VIADUCT_VERBS_SOFT_IWARP_CRC32C_H_
#define VIADUCT_VERBS_SOFT_IWARP_CRC32C_H_

#include <cstdint>
#include <span>

// CRC32C (Castagnoli: reflected polynomial 0x82F63B78, initial value and final xor all ones), the
// checksum of an FPDU. The arithmetic is libisal's, which picks the processor's own instructions.

namespace viaduct::verbs::iwarp {

// A checksum over bytes that lie in several places. Append() in order, then value(); Append() may
// go on afterwards.
class Crc32c {
 public:
  void Append(std::span<const uint8_t> bytes);
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = 0xFFFFFFFF;
};

// The checksum of one stretch of bytes: "123456789" gives 0xE3069283.
uint32_t ComputeCrc32c(std::span<const uint8_t> bytes);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_CRC32C_H_
