#ifndef VIADUCT_VERBS_SOFT_IWARP_FPDU_WRITER_H_
#define VIADUCT_VERBS_SOFT_IWARP_FPDU_WRITER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/ddp_format.h"
#include "verbs/soft/iwarp/mpa_format.h"

// Frames one DDP segment as an FPDU for a gathering send: produces what goes before the payload and
// what goes after it. The payload itself is never copied.

namespace viaduct::verbs::iwarp {

struct FpduFrame {
  std::array<uint8_t, kFpduLengthSize + kDdpUntaggedSize + kMaxTerminateSize> head;
  std::array<uint8_t, kFpduAlignment - 1 + kFpduCrcSize> tail;
  uint8_t head_size = 0;
  uint8_t tail_size = 0;

  std::span<const uint8_t> head_bytes() const { return {head.data(), head_size}; }
  std::span<const uint8_t> tail_bytes() const { return {tail.data(), tail_size}; }
};

// Fills *frame for the segment `header` + `fixed` + `payload`. `fixed` (a Read Request, a
// Terminate, Immediate Data; at most kMaxTerminateSize bytes) is copied after the header. With
// `crc` the payload is read here and must not change until it is sent; without, the CRC field is 0.
// The ULPDU must not exceed kMaxUlpduLength.
void FrameFpdu(const DdpHeader& header, std::span<const uint8_t> fixed,
               std::span<const iovec> payload, bool crc, FpduFrame* frame);

// The longest ULPDU toward a peer whose TCP segments carry `mss` bytes (MULPDU of RFC 5044 4.1,
// never below 128): an FPDU then fits one TCP segment, which suits hardware receivers best.
constexpr size_t UlpduLimit(size_t mss) {
  constexpr size_t kLeast = 128;
  constexpr size_t kMost = 65524;  // header, payload and CRC fit 64 KiB
  constexpr size_t kOverhead = kFpduLengthSize + kFpduCrcSize;
  const size_t fpdu = mss & ~size_t{3};
  if (fpdu < kLeast + kOverhead) return kLeast;
  return fpdu - kOverhead > kMost ? kMost : fpdu - kOverhead;
}

// The longest payload of a segment that is not its message's last: a multiple of four, so that only
// last segments are padded.
constexpr size_t PayloadLimit(size_t ulpdu_limit, bool tagged) {
  return (ulpdu_limit - (tagged ? kDdpTaggedSize : kDdpUntaggedSize)) & ~size_t{3};
}

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_FPDU_WRITER_H_
