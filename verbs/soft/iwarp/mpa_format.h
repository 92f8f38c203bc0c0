#ifndef VIADUCT_VERBS_SOFT_IWARP_MPA_FORMAT_H_
#define VIADUCT_VERBS_SOFT_IWARP_MPA_FORMAT_H_

#include <cstddef>
#include <cstdint>

// Constants and offsets of MPA (RFC 5044, RFC 6581): the two startup frames and the FPDU. FORMAT.md
// beside this file describes them byte by byte.

namespace viaduct::verbs::iwarp {

// Startup frames.
inline constexpr size_t kMpaKeySize = 16;
inline constexpr char kMpaRequestKey[kMpaKeySize + 1] = "MPA ID Req Frame";
inline constexpr char kMpaReplyKey[kMpaKeySize + 1] = "MPA ID Rep Frame";

inline constexpr size_t kMpaFlagsOffset = 16;
inline constexpr size_t kMpaRevisionOffset = 17;
inline constexpr size_t kMpaPrivateLengthOffset = 18;
inline constexpr size_t kMpaHeaderSize = 20;

inline constexpr uint8_t kMpaFlagMarkers = 0x80;
inline constexpr uint8_t kMpaFlagCrc = 0x40;
inline constexpr uint8_t kMpaFlagReject = 0x20;
inline constexpr uint8_t kMpaFlagEnhanced = 0x10;  // RFC 6581 "S"

inline constexpr uint8_t kMpaMaxRevision = 2;
inline constexpr uint8_t kMpaEnhancedRevision = 2;

// The RFC 6581 word in front of the private data of an enhanced frame.
inline constexpr size_t kMpaDepthsSize = 4;
inline constexpr uint16_t kMpaPeerToPeer = 0x8000;  // "A", beside IRD
inline constexpr uint16_t kMpaRtrSend = 0x4000;     // "B", beside IRD
inline constexpr uint16_t kMpaRtrWrite = 0x8000;    // "C", beside ORD
inline constexpr uint16_t kMpaRtrRead = 0x4000;     // "D", beside ORD
inline constexpr uint16_t kMpaDepthMask = 0x3FFF;
inline constexpr uint16_t kMpaMaxDepth = 0x3FFE;
inline constexpr uint16_t kMpaDepthUnspecified = 0x3FFF;  // "the consumer negotiates"

// Upper limit of the private data's length field, which counts the word too.
inline constexpr size_t kMpaMaxPrivateLength = 512;
// Replies are kept to what every known initiator takes: a longer one brings down the kernel of a
// Linux 6.1 siw initiator.
inline constexpr size_t kMpaMaxReplyPrivateLength = 256;
inline constexpr size_t kMpaMaxFrameSize = kMpaHeaderSize + kMpaMaxPrivateLength;

// FPDU.
inline constexpr size_t kFpduLengthSize = 2;
inline constexpr size_t kFpduCrcSize = 4;
inline constexpr size_t kFpduAlignment = 4;
inline constexpr size_t kMaxUlpduLength = 65535;

// Zero bytes between a ULPDU of this length and the CRC.
constexpr size_t FpduPad(size_t ulpdu_length) {
  return (kFpduAlignment - (kFpduLengthSize + ulpdu_length) % kFpduAlignment) % kFpduAlignment;
}

// Bytes of an FPDU on the wire.
constexpr size_t FpduSize(size_t ulpdu_length) {
  return kFpduLengthSize + ulpdu_length + FpduPad(ulpdu_length) + kFpduCrcSize;
}

inline constexpr size_t kMaxFpduSize = FpduSize(kMaxUlpduLength);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_MPA_FORMAT_H_
