// Descriptors into requests, completions into Status words.
//
// VIP_DATA_SEGMENT and verbs::Segment have one layout, so segments go to the device as they stand.
#ifndef VIADUCT_COMPAT_DESCRIPTOR_H_
#define VIADUCT_COMPAT_DESCRIPTOR_H_

#include <vipl.h>

#include <cstddef>
#include <cstdint>

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
};

// Bytes of a descriptor with that many segments after the control segment.
constexpr size_t DescriptorBytes(uint32_t segments) {
  return sizeof(VIP_CONTROL_SEGMENT) + segments * sizeof(VIP_DATA_SEGMENT);
}

// Fills `request` except its id; returns 0 or the VIP_STATUS_*_ERROR that the descriptor gets in
// its turn. `descriptor` is aligned and has SegCount readable segments. Length must agree with the
// segments and not exceed the VI's MaxTransferSize (LENGTH_ERROR); reserved bits and operation,
// segment counts, an RDMA read that the level does not have or with immediate data: FORMAT_ERROR.
uint32_t ReadSend(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits,
                  verbs::SendRequest* request);

// As above. A receive's capacity is the sum of its segments: Length is not looked at, since
// programs post a descriptor again with the byte count of its last message in it.
uint32_t ReadReceive(const VIP_DESCRIPTOR& descriptor, const DescriptorLimits& limits,
                     verbs::ReceiveRequest* request);

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
// receive; to the other levels it is a connection that broke.
uint32_t FailureBitsOf(verbs::Status status, VIP_RELIABILITY_LEVEL level);
inline uint32_t ErrorBitsOf(verbs::Status status, VIP_RELIABILITY_LEVEL level) {
  return status == verbs::Status::kSuccess ? 0 : FailureBitsOf(status, level);
}

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_DESCRIPTOR_H_
