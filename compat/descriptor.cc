#include "compat/descriptor.h"

namespace viaduct::compat {
namespace {

absl::Span<const verbs::Segment> SegmentsOf(const VIP_DESCRIPTOR& descriptor, uint32_t first,
                                            uint32_t count) {
  const auto* control = reinterpret_cast<const unsigned char*>(&descriptor);
  return absl::MakeConstSpan(
      reinterpret_cast<const verbs::Segment*>(control + DescriptorBytes(first)), count);
}

uint64_t SumOf(absl::Span<const verbs::Segment> segments) {
  uint64_t sum = 0;
  for (const verbs::Segment& segment : segments) sum += segment.length;
  return sum;
}

}  // namespace

uint32_t ReadSend(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits,
                  verbs::SendRequest* request) {
  const VIP_CONTROL_SEGMENT& control = descriptor.CS;
  if ((control.Control & VIP_CONTROL_RESERVED) != 0) return VIP_STATUS_FORMAT_ERROR;
  const bool immediate = (control.Control & VIP_CONTROL_IMMEDIATE) != 0;
  uint32_t first = 1;
  switch (control.Control & VIP_CONTROL_OP_MASK) {
    case VIP_CONTROL_OP_SENDRECV:
      request->opcode = verbs::Opcode::kSend;
      first = 0;
      break;
    case VIP_CONTROL_OP_RDMAWRITE:
      request->opcode = verbs::Opcode::kWrite;
      break;
    case VIP_CONTROL_OP_RDMAREAD:
      if (!limits.rdma_read || immediate) return VIP_STATUS_FORMAT_ERROR;
      request->opcode = verbs::Opcode::kRead;
      break;
    default:
      return VIP_STATUS_FORMAT_ERROR;
  }
  const uint32_t count = control.SegCount;
  if (count < first || count > limits.max_segments) return VIP_STATUS_FORMAT_ERROR;
  request->segments = SegmentsOf(descriptor, first, count - first);
  const uint64_t sum = SumOf(request->segments);
  if (sum != control.Length || sum > limits.max_transfer_size) return VIP_STATUS_LENGTH_ERROR;
  request->flags = limits.request_flags;
  if (immediate) request->flags |= verbs::kImmediate;
  if ((control.Control & VIP_CONTROL_QFENCE) != 0) request->flags |= verbs::kFence;
  request->immediate = control.ImmediateData;
  if (first == 1) {
    request->remote_address = descriptor.DS[0].Remote.Data.AddressBits;
    request->remote_key = descriptor.DS[0].Remote.Handle;
  }
  return 0;
}

uint32_t ReadReceive(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits,
                     verbs::ReceiveRequest* request) {
  const VIP_CONTROL_SEGMENT& control = descriptor.CS;
  if ((control.Control & VIP_CONTROL_RESERVED) != 0 ||
      (control.Control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV ||
      control.SegCount > limits.max_segments) {
    return VIP_STATUS_FORMAT_ERROR;
  }
  request->segments = SegmentsOf(descriptor, 0, control.SegCount);
  return 0;
}

uint32_t FailureBitsOf(verbs::Status status, VIP_RELIABILITY_LEVEL level) {
  switch (status) {
    case verbs::Status::kSuccess:
      return 0;
    case verbs::Status::kFlushed:
      return VIP_STATUS_DESC_FLUSHED_ERROR;
    case verbs::Status::kLocalLength:
      return VIP_STATUS_LENGTH_ERROR;
    case verbs::Status::kLocalProtection:
      return VIP_STATUS_PROTECTION_ERROR;
    case verbs::Status::kRemoteAccess:
      return VIP_STATUS_RDMA_PROT_ERROR;
    case verbs::Status::kRemoteOperation:
    case verbs::Status::kReceiverNotReady:
      return level == VIP_SERVICE_RELIABLE_RECEPTION ? VIP_STATUS_REMOTE_DESC_ERROR
                                                     : VIP_STATUS_TRANSPORT_ERROR;
    case verbs::Status::kTransport:
      return VIP_STATUS_TRANSPORT_ERROR;
  }
  return VIP_STATUS_TRANSPORT_ERROR;
}

}  // namespace viaduct::compat
