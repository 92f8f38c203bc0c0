#ifndef VIADUCT_VERBS_SOFT_IWARP_DDP_FORMAT_H_
#define VIADUCT_VERBS_SOFT_IWARP_DDP_FORMAT_H_

#include <cstddef>
#include <cstdint>

// Constants and offsets of DDP (RFC 5041) and RDMAP (RFC 5040, RFC 7306). Offsets count from the
// first byte of the ULPDU, that is of the DDP segment. FORMAT.md describes them byte by byte.

namespace viaduct::verbs::iwarp {

// Byte 0: DDP control.
inline constexpr uint8_t kDdpTagged = 0x80;
inline constexpr uint8_t kDdpLast = 0x40;
inline constexpr uint8_t kDdpVersionMask = 0x03;
inline constexpr uint8_t kDdpVersion = 0x01;

// Byte 1: RDMAP control.
inline constexpr uint8_t kRdmapVersionMask = 0xC0;
inline constexpr uint8_t kRdmapVersion = 0x40;
inline constexpr uint8_t kRdmapOpcodeMask = 0x0F;

inline constexpr size_t kDdpControlSize = 2;
inline constexpr size_t kDdpTaggedSize = 14;
inline constexpr size_t kDdpUntaggedSize = 18;

inline constexpr size_t kDdpStagOffset = 2;        // tagged
inline constexpr size_t kDdpOffsetOffset = 6;      // tagged: TO
inline constexpr size_t kDdpInvalidateOffset = 2;  // untagged: the STag to invalidate, or 0
inline constexpr size_t kDdpQueueOffset = 6;       // untagged: QN
inline constexpr size_t kDdpSequenceOffset = 10;   // untagged: MSN
inline constexpr size_t kDdpMessageOffset = 14;    // untagged: MO

// Untagged queues.
inline constexpr uint32_t kQueueSend = 0;
inline constexpr uint32_t kQueueReadRequest = 1;
inline constexpr uint32_t kQueueTerminate = 2;
inline constexpr uint32_t kQueueAtomicResponse = 3;

inline constexpr uint32_t kFirstSequence = 1;

enum class RdmapOpcode : uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
  kImmediate = 8,           // RFC 7306
  kImmediateSolicited = 9,  // RFC 7306
  kAtomicRequest = 10,      // RFC 7306
  kAtomicResponse = 11,     // RFC 7306
};
inline constexpr uint8_t kLastOpcode = 11;

// Payload of a Read Request, after the untagged header.
inline constexpr size_t kReadSinkStagOffset = 0;
inline constexpr size_t kReadSinkOffsetOffset = 4;
inline constexpr size_t kReadSizeOffset = 12;
inline constexpr size_t kReadSourceStagOffset = 16;
inline constexpr size_t kReadSourceOffsetOffset = 20;
inline constexpr size_t kReadRequestSize = 28;

// Payload of an Atomic Request and of its response.
inline constexpr size_t kAtomicOperationOffset = 0;  // in the low four bits
inline constexpr size_t kAtomicIdOffset = 4;
inline constexpr size_t kAtomicStagOffset = 8;
inline constexpr size_t kAtomicAddressOffset = 12;
inline constexpr size_t kAtomicDataOffset = 20;
inline constexpr size_t kAtomicDataMaskOffset = 28;
inline constexpr size_t kAtomicCompareOffset = 36;
inline constexpr size_t kAtomicCompareMaskOffset = 44;
inline constexpr size_t kAtomicRequestSize = 52;
inline constexpr uint32_t kAtomicFetchAdd = 0;
inline constexpr uint32_t kAtomicCompareSwap = 2;
inline constexpr size_t kAtomicResponseValueOffset = 4;
inline constexpr size_t kAtomicResponseSize = 12;

// Payload of Immediate Data: the value and the length of the Write before it, four bytes each; or,
// between two Viaducts that agreed on it, a kind and the value.
inline constexpr size_t kImmediateSize = 8;
inline constexpr uint32_t kImmediateForSend = 1;   // the value of the Send that follows
inline constexpr uint32_t kImmediateForWrite = 2;  // the value of the Write that follows

// The STag of frames that name no memory. Some hardware refuses 0 even in zero-length messages.
inline constexpr uint32_t kNoMemoryStag = 1;

// Payload of a Terminate.
inline constexpr size_t kTerminateLayerOffset = 0;  // layer << 4 | error type
inline constexpr size_t kTerminateCodeOffset = 1;
inline constexpr size_t kTerminateFlagsOffset = 2;
inline constexpr size_t kTerminateControlSize = 4;
inline constexpr uint8_t kTerminateHasLength = 0x80;  // M
inline constexpr uint8_t kTerminateHasDdp = 0x40;     // D
inline constexpr uint8_t kTerminateHasRdmap = 0x20;   // R
inline constexpr size_t kTerminateLengthSize = 2;
inline constexpr size_t kMaxTerminateSize =
    kTerminateControlSize + kTerminateLengthSize + kDdpUntaggedSize + kReadRequestSize;

// Linux siw on little-endian machines reverses the bits of both control bytes.
inline constexpr uint8_t kSiwTerminateHasLength = 0x01;
inline constexpr uint8_t kSiwTerminateHasDdp = 0x02;
inline constexpr uint8_t kSiwTerminateHasRdmap = 0x04;

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_DDP_FORMAT_H_
