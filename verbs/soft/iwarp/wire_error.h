#ifndef VIADUCT_VERBS_SOFT_IWARP_WIRE_ERROR_H_
#define VIADUCT_VERBS_SOFT_IWARP_WIRE_ERROR_H_

#include <cstdint>
#include <string>

// What a Terminate message says: the layer that failed, the type and the code of the error
// (RFC 5040 4.8, RFC 5041 7.2, RFC 5044 8, RFC 6581 9, RFC 7306).

namespace viaduct::verbs::iwarp {

struct WireError {
  uint8_t layer = 0;  // 0 RDMAP, 1 DDP, 2 LLP (MPA)
  uint8_t type = 0;
  uint8_t code = 0;

  friend bool operator==(const WireError&, const WireError&) = default;
};

// Layer 0: RDMAP.
inline constexpr WireError kRdmapLocalCatastrophic{0, 0, 0};
inline constexpr WireError kReadInvalidStag{0, 1, 0};
inline constexpr WireError kReadBounds{0, 1, 1};
inline constexpr WireError kReadAccess{0, 1, 2};
inline constexpr WireError kReadNotAssociated{0, 1, 3};
inline constexpr WireError kReadWrap{0, 1, 4};
inline constexpr WireError kCannotInvalidate{0, 1, 9};
inline constexpr WireError kRdmapBadVersion{0, 2, 5};
inline constexpr WireError kUnexpectedOpcode{0, 2, 6};
inline constexpr WireError kCatastrophicStream{0, 2, 7};

// Layer 1: DDP, tagged and untagged buffers.
inline constexpr WireError kTaggedInvalidStag{1, 1, 0};
inline constexpr WireError kTaggedBounds{1, 1, 1};
inline constexpr WireError kTaggedNotAssociated{1, 1, 2};
inline constexpr WireError kTaggedWrap{1, 1, 3};
inline constexpr WireError kTaggedBadVersion{1, 1, 4};
inline constexpr WireError kUntaggedBadQueue{1, 2, 1};
inline constexpr WireError kNoBuffer{1, 2, 2};
inline constexpr WireError kUntaggedBadSequence{1, 2, 3};
inline constexpr WireError kUntaggedBadOffset{1, 2, 4};
inline constexpr WireError kMessageTooLong{1, 2, 5};
inline constexpr WireError kUntaggedBadVersion{1, 2, 6};

// Layer 2: MPA.
inline constexpr WireError kConnectionLost{2, 0, 1};
inline constexpr WireError kCrcMismatch{2, 0, 2};
inline constexpr WireError kBadFraming{2, 0, 3};
inline constexpr WireError kBadStartup{2, 0, 4};
inline constexpr WireError kInsufficientIrd{2, 0, 6};
inline constexpr WireError kNoMatchingRtr{2, 0, 7};

// For the log: "DDP untagged buffer: no buffer (1/2/2)".
std::string Describe(const WireError& error);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_WIRE_ERROR_H_
