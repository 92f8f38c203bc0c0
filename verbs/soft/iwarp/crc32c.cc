#include "verbs/soft/iwarp/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace viaduct::verbs::iwarp {

void Crc32c::Append(std::span<const uint8_t> bytes) {
  // crc32_iscsi takes its length as an int and a pointer to bytes that it does not change; it
  // leaves the initial value and the final complement to the caller.
  constexpr size_t kStep = size_t{1} << 30;
  while (!bytes.empty()) {
    const size_t step = std::min(bytes.size(), kStep);
    state_ = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(step), state_);
    bytes = bytes.subspan(step);
  }
}

uint32_t ComputeCrc32c(std::span<const uint8_t> bytes) {
  Crc32c crc;
  crc.Append(bytes);
  return crc.value();
}

}  // namespace viaduct::verbs::iwarp
