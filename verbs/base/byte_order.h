// Loads and stores of a wire's integers, at any alignment.
#ifndef VIADUCT_VERBS_BASE_BYTE_ORDER_H_
#define VIADUCT_VERBS_BASE_BYTE_ORDER_H_

#include <cstdint>

namespace viaduct::verbs {

inline uint16_t LoadBig16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }

inline uint32_t LoadBig32(const uint8_t* p) {
  return static_cast<uint32_t>(LoadBig16(p)) << 16 | LoadBig16(p + 2);
}

inline uint64_t LoadBig64(const uint8_t* p) {
  return static_cast<uint64_t>(LoadBig32(p)) << 32 | LoadBig32(p + 4);
}

inline void StoreBig16(uint8_t* p, uint16_t value) {
  p[0] = static_cast<uint8_t>(value >> 8);
  p[1] = static_cast<uint8_t>(value);
}

inline void StoreBig32(uint8_t* p, uint32_t value) {
  StoreBig16(p, static_cast<uint16_t>(value >> 16));
  StoreBig16(p + 2, static_cast<uint16_t>(value));
}

inline void StoreBig64(uint8_t* p, uint64_t value) {
  StoreBig32(p, static_cast<uint32_t>(value >> 32));
  StoreBig32(p + 4, static_cast<uint32_t>(value));
}

inline uint32_t LoadLittle32(const uint8_t* p) {
  return static_cast<uint32_t>(p[3]) << 24 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[1]) << 8 | p[0];
}

inline void StoreLittle32(uint8_t* p, uint32_t value) {
  p[0] = static_cast<uint8_t>(value);
  p[1] = static_cast<uint8_t>(value >> 8);
  p[2] = static_cast<uint8_t>(value >> 16);
  p[3] = static_cast<uint8_t>(value >> 24);
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BYTE_ORDER_H_
