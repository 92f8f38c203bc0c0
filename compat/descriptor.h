// Turns descriptors into requests, and completions into Status words.
//
// VIP_DATA_SEGMENT and verbs::Segment have one layout, so segments go to the device as they stand.
#ifndef VIADUCT_COMPAT_DESCRIPTOR_H_
#define VIADUCT_COMPAT_DESCRIPTOR_H_

#include <vipl.h>

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "verbs/device.h"

namespace viaduct::compat {

static_assert(sizeof(VIP_DATA_SEGMENT) == sizeof(verbs::Segment) &&
              offsetof(VIP_DATA_SEGMENT, Data) == offsetof(verbs::Segment, address) &&
              offsetof(VIP_DATA_SEGMENT, Handle) == offsetof(verbs::Segment, key) &&
              offsetof(VIP_DATA_SEGMENT, Length) == offsetof(verbs::Segment, length));

struct DescriptorLimits {
  uint32_t max_segments = 0;  // SegCount: an RDMA's address segment is counted too
  uint32_t max_transfer_size = 0;
  uint16_t request_flags = 0;  // verbs::RequestFlag for every send and RDMA
  bool rdma_read = false;      // the level supports it
  bool all_immediate = false;  // a send carries ImmediateData without VIP_CONTROL_IMMEDIATE, too
};

// Bytes of a descriptor with that many segments after the control segment.
constexpr size_t DescriptorBytes(uint32_t segments) {
  return sizeof(VIP_CONTROL_SEGMENT) + segments * sizeof(VIP_DATA_SEGMENT);
}

inline absl::Span<const verbs::Segment> SegmentsOf(const VIP_DESCRIPTOR& descriptor, uint32_t first,
                                                   uint32_t count) {
  const auto* control = reinterpret_cast<const unsigned char*>(&descriptor);
  return absl::MakeConstSpan(
      reinterpret_cast<const verbs::Segment*>(control + DescriptorBytes(first)), count);
}

inline uint64_t SumOf(absl::Span<const verbs::Segment> segments) {
  uint64_t sum = 0;
  for (const verbs::Segment& segment : segments) sum += segment.length;
  return sum;
}

// A word of a descriptor. A peer with the right to write there, or another thread, may change it at
// any time, so it is loaded only once: the value that is checked is the one that is used.
template <typename T>
T ReadOnce(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

// SegCount, for the caller to check that so many segments are readable.
inline uint32_t SegmentCountOf(const VIP_DESCRIPTOR& descriptor) {
  return ReadOnce(descriptor.CS.SegCount);
}

// Fills `request` except its id; returns 0 or the VIP_STATUS_*_ERROR with which the descriptor
// completes in its turn. `descriptor` must be aligned and have `count` readable segments, where
// `count` is its SegmentCountOf. LENGTH_ERROR: Length does not agree with the segments or exceeds
// the VI's MaxTransferSize. FORMAT_ERROR: reserved bits, an unknown operation, a wrong segment
// count, or an RDMA read that the level lacks or that has immediate data. The opcode is filled in
// even then, if the operation is known.
inline uint32_t ReadSend(const VIP_DESCRIPTOR& descriptor, uint32_t count,
                         const DescriptorLimits& limits, verbs::SendRequest* request) {
  const VIP_UINT16 control = ReadOnce(descriptor.CS.Control);
  bool immediate = (control & VIP_CONTROL_IMMEDIATE) != 0;
  uint32_t first = 1;
  switch (control & VIP_CONTROL_OP_MASK) {
    case VIP_CONTROL_OP_SENDRECV:
      request->opcode = verbs::Opcode::kSend;
      first = 0;
      immediate = immediate || limits.all_immediate;
      break;
    case VIP_CONTROL_OP_RDMAWRITE:
      request->opcode = verbs::Opcode::kWrite;
      break;
    case VIP_CONTROL_OP_RDMAREAD:
      request->opcode = verbs::Opcode::kRead;
      break;
    default:
      return VIP_STATUS_FORMAT_ERROR;
  }
  const bool reads = request->opcode == verbs::Opcode::kRead;
  if ((control & VIP_CONTROL_RESERVED) != 0 || (reads && (!limits.rdma_read || immediate))) {
    return VIP_STATUS_FORMAT_ERROR;
  }
  if (count < first || count > limits.max_segments) return VIP_STATUS_FORMAT_ERROR;
  request->segments = SegmentsOf(descriptor, first, count - first);
  const uint64_t sum = SumOf(request->segments);
  if (sum != descriptor.CS.Length || sum > limits.max_transfer_size) return VIP_STATUS_LENGTH_ERROR;
  request->flags = limits.request_flags;
  if (immediate) request->flags |= verbs::kImmediate;
  if ((control & VIP_CONTROL_QFENCE) != 0) request->flags |= verbs::kFence;
  request->immediate = descriptor.CS.ImmediateData;
  if (first == 1) {
    request->remote_address = descriptor.DS[0].Remote.Data.AddressBits;
    request->remote_key = descriptor.DS[0].Remote.Handle;
  }
  return 0;
}

// As above. A receive's capacity is the sum of its segments. Length is ignored, since programs post
// a descriptor again with the byte count of its last message in it.
inline uint32_t ReadReceive(const VIP_DESCRIPTOR& descriptor, uint32_t count,
                            const DescriptorLimits& limits, verbs::ReceiveRequest* request) {
  const VIP_UINT16 control = ReadOnce(descriptor.CS.Control);
  if ((control & VIP_CONTROL_RESERVED) != 0 ||
      (control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV || count > limits.max_segments) {
    return VIP_STATUS_FORMAT_ERROR;
  }
  request->segments = SegmentsOf(descriptor, 0, count);
  return 0;
}

// VIP_STATUS_OP_*.
inline uint32_t OperationOf(verbs::Opcode opcode) {
  switch (opcode) {
    case verbs::Opcode::kSend:
      return VIP_STATUS_OP_SEND;
    case verbs::Opcode::kWrite:
      return VIP_STATUS_OP_RDMA_WRITE;
    case verbs::Opcode::kRead:
      return VIP_STATUS_OP_RDMA_READ;
    case verbs::Opcode::kReceive:
    case verbs::Opcode::kReceiveInvalidate:
      return VIP_STATUS_OP_RECEIVE;
    case verbs::Opcode::kReceiveWrite:
      return VIP_STATUS_OP_REMOTE_RDMA_WRITE;
    case verbs::Opcode::kCompareAndSwap:  // no descriptor asks for these
    case verbs::Opcode::kFetchAndAdd:
    case verbs::Opcode::kSendInvalidate:
    case verbs::Opcode::kBind:
      break;
  }
  return VIP_STATUS_OP_SEND;
}

// VIP_STATUS_*_ERROR, or 0. Only reliable reception tells the sender what happened to the remote
// receive; at the other levels that shows as a broken connection.
uint32_t FailureBitsOf(verbs::Status status, VIP_RELIABILITY_LEVEL level);
inline uint32_t ErrorBitsOf(verbs::Status status, VIP_RELIABILITY_LEVEL level) {
  return status == verbs::Status::kSuccess ? 0 : FailureBitsOf(status, level);
}

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_DESCRIPTOR_H_
