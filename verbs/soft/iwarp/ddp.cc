#include "verbs/soft/iwarp/ddp.h"

#include "absl/base/macros.h"
#include "verbs/base/byte_order.h"

namespace viaduct::verbs::iwarp {

bool IsTagged(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kWrite || opcode == RdmapOpcode::kReadResponse;
}

uint32_t QueueOf(RdmapOpcode opcode) {
  switch (opcode) {
    case RdmapOpcode::kReadRequest:
    case RdmapOpcode::kAtomicRequest:
      return kQueueReadRequest;
    case RdmapOpcode::kAtomicResponse:
      return kQueueAtomicResponse;
    case RdmapOpcode::kTerminate:
      return kQueueTerminate;
    default:
      return kQueueSend;
  }
}

bool IsSolicited(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kSendSolicited || opcode == RdmapOpcode::kSendSolicitedInvalidate ||
         opcode == RdmapOpcode::kImmediateSolicited;
}

bool HasInvalidate(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kSendInvalidate || opcode == RdmapOpcode::kSendSolicitedInvalidate;
}

DdpHeader TaggedHeader(RdmapOpcode opcode, uint32_t stag, uint64_t offset, bool last) {
  DdpHeader header;
  header.tagged = true;
  header.last = last;
  header.opcode = opcode;
  header.stag = stag;
  header.offset = offset;
  return header;
}

DdpHeader UntaggedHeader(RdmapOpcode opcode, uint32_t sequence, uint32_t message_offset,
                         bool last) {
  DdpHeader header;
  header.last = last;
  header.opcode = opcode;
  header.queue = QueueOf(opcode);
  header.sequence = sequence;
  header.message_offset = message_offset;
  return header;
}

size_t EncodeDdpHeader(const DdpHeader& header, std::span<uint8_t> out) {
  ABSL_HARDENING_ASSERT(out.size() >= header.size());
  uint8_t* const p = out.data();
  p[0] = static_cast<uint8_t>(kDdpVersion | (header.tagged ? kDdpTagged : 0) |
                              (header.last ? kDdpLast : 0));
  p[1] = static_cast<uint8_t>(kRdmapVersion | static_cast<uint8_t>(header.opcode));
  if (header.tagged) {
    StoreBig32(p + kDdpStagOffset, header.stag);
    StoreBig64(p + kDdpOffsetOffset, header.offset);
  } else {
    StoreBig32(p + kDdpInvalidateOffset, header.invalidate);
    StoreBig32(p + kDdpQueueOffset, header.queue);
    StoreBig32(p + kDdpSequenceOffset, header.sequence);
    StoreBig32(p + kDdpMessageOffset, header.message_offset);
  }
  return header.size();
}

std::optional<WireError> ParseDdpHeader(std::span<const uint8_t> ulpdu, DdpHeader* header) {
  if (ulpdu.size() < kDdpControlSize) return kBadFraming;
  const uint8_t* const p = ulpdu.data();
  DdpHeader h;
  h.tagged = p[0] & kDdpTagged;
  h.last = p[0] & kDdpLast;
  if (ulpdu.size() < h.size()) return kBadFraming;
  if ((p[0] & kDdpVersionMask) != kDdpVersion) {
    return h.tagged ? kTaggedBadVersion : kUntaggedBadVersion;
  }
  if ((p[1] & kRdmapVersionMask) != kRdmapVersion) return kRdmapBadVersion;
  const uint8_t opcode = p[1] & kRdmapOpcodeMask;
  if (opcode > kLastOpcode) return kUnexpectedOpcode;
  h.opcode = static_cast<RdmapOpcode>(opcode);
  if (h.tagged != IsTagged(h.opcode)) return kUnexpectedOpcode;
  if (h.tagged) {
    h.stag = LoadBig32(p + kDdpStagOffset);
    h.offset = LoadBig64(p + kDdpOffsetOffset);
  } else {
    if (HasInvalidate(h.opcode)) h.invalidate = LoadBig32(p + kDdpInvalidateOffset);
    h.queue = LoadBig32(p + kDdpQueueOffset);
    h.sequence = LoadBig32(p + kDdpSequenceOffset);
    h.message_offset = LoadBig32(p + kDdpMessageOffset);
    if (h.queue != QueueOf(h.opcode)) return kUntaggedBadQueue;
  }
  *header = h;
  return std::nullopt;
}

std::span<const uint8_t> HeaderBytes(std::span<const uint8_t> ulpdu) {
  if (ulpdu.empty()) return {};
  const size_t size = (ulpdu[0] & kDdpTagged) ? kDdpTaggedSize : kDdpUntaggedSize;
  return ulpdu.size() < size ? std::span<const uint8_t>() : ulpdu.first(size);
}

void EncodeReadRequest(const ReadRequest& request, std::span<uint8_t, kReadRequestSize> out) {
  uint8_t* const p = out.data();
  StoreBig32(p + kReadSinkStagOffset, request.sink_stag);
  StoreBig64(p + kReadSinkOffsetOffset, request.sink_offset);
  StoreBig32(p + kReadSizeOffset, request.size);
  StoreBig32(p + kReadSourceStagOffset, request.source_stag);
  StoreBig64(p + kReadSourceOffsetOffset, request.source_offset);
}

ReadRequest DecodeReadRequest(std::span<const uint8_t, kReadRequestSize> in) {
  const uint8_t* const p = in.data();
  ReadRequest request;
  request.sink_stag = LoadBig32(p + kReadSinkStagOffset);
  request.sink_offset = LoadBig64(p + kReadSinkOffsetOffset);
  request.size = LoadBig32(p + kReadSizeOffset);
  request.source_stag = LoadBig32(p + kReadSourceStagOffset);
  request.source_offset = LoadBig64(p + kReadSourceOffsetOffset);
  return request;
}

void EncodeAtomicRequest(const AtomicRequest& request, std::span<uint8_t, kAtomicRequestSize> out) {
  uint8_t* const p = out.data();
  StoreBig32(p + kAtomicOperationOffset, request.operation);
  StoreBig32(p + kAtomicIdOffset, request.id);
  StoreBig32(p + kAtomicStagOffset, request.stag);
  StoreBig64(p + kAtomicAddressOffset, request.address);
  StoreBig64(p + kAtomicDataOffset, request.data);
  StoreBig64(p + kAtomicDataMaskOffset, request.data_mask);
  StoreBig64(p + kAtomicCompareOffset, request.compare);
  StoreBig64(p + kAtomicCompareMaskOffset, request.compare_mask);
}

AtomicRequest DecodeAtomicRequest(std::span<const uint8_t, kAtomicRequestSize> in) {
  const uint8_t* const p = in.data();
  AtomicRequest request;
  request.operation = LoadBig32(p + kAtomicOperationOffset) & 15;
  request.id = LoadBig32(p + kAtomicIdOffset);
  request.stag = LoadBig32(p + kAtomicStagOffset);
  request.address = LoadBig64(p + kAtomicAddressOffset);
  request.data = LoadBig64(p + kAtomicDataOffset);
  request.data_mask = LoadBig64(p + kAtomicDataMaskOffset);
  request.compare = LoadBig64(p + kAtomicCompareOffset);
  request.compare_mask = LoadBig64(p + kAtomicCompareMaskOffset);
  return request;
}

uint64_t ApplyAtomic(const AtomicRequest& request, uint64_t old) {
  if (request.operation == kAtomicCompareSwap) {
    if (((request.compare ^ old) & request.compare_mask) != 0) return old;
    return (old & ~request.data_mask) | (request.data & request.data_mask);
  }
  // Each bit of the mask is the top bit of a field; the carry out of a field is lost. A sum without
  // the top bits carries into them at most; they are then added without carry.
  const uint64_t tops = request.data_mask;
  const uint64_t sum = (old & ~tops) + (request.data & ~tops);
  return sum ^ ((old ^ request.data) & tops);
}

}  // namespace viaduct::verbs::iwarp
