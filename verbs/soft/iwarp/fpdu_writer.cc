#include "verbs/soft/iwarp/fpdu_writer.h"

#include <algorithm>

#include "absl/base/macros.h"
#include "verbs/base/byte_order.h"
#include "verbs/soft/iwarp/crc32c.h"

namespace viaduct::verbs::iwarp {

void FrameFpdu(const DdpHeader& header, std::span<const uint8_t> fixed,
               std::span<const iovec> payload, bool crc, FpduFrame* frame) {
  ABSL_HARDENING_ASSERT(fixed.size() <= kMaxTerminateSize);
  size_t ulpdu = header.size() + fixed.size();
  for (const iovec& part : payload) ulpdu += part.iov_len;
  ABSL_HARDENING_ASSERT(ulpdu <= kMaxUlpduLength);

  StoreBig16(frame->head.data(), static_cast<uint16_t>(ulpdu));
  size_t head = kFpduLengthSize;
  head += EncodeDdpHeader(header, std::span<uint8_t>(frame->head).subspan(head));
  std::copy(fixed.begin(), fixed.end(), frame->head.begin() + head);
  head += fixed.size();
  frame->head_size = static_cast<uint8_t>(head);

  const size_t pad = FpduPad(ulpdu);
  frame->tail.fill(0);
  frame->tail_size = static_cast<uint8_t>(pad + kFpduCrcSize);
  if (!crc) return;
  Crc32c sum;
  sum.Append(frame->head_bytes());
  for (const iovec& part : payload) {
    sum.Append({static_cast<const uint8_t*>(part.iov_base), part.iov_len});
  }
  sum.Append(frame->tail_bytes().first(pad));
  StoreLittle32(frame->tail.data() + pad, sum.value());
}

}  // namespace viaduct::verbs::iwarp
