#ifndef VIADUCT_VERBS_SOFT_IWARP_DDP_H_
#define VIADUCT_VERBS_SOFT_IWARP_DDP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbs/soft/iwarp/ddp_format.h"
#include "verbs/soft/iwarp/wire_error.h"

// Headers of DDP segments and the fixed payloads of RDMAP: encode and parse. Pure code that
// allocates nothing. inbound_sequence.h checks a segment against the ones before it.

namespace viaduct::verbs::iwarp {

// One header, of either kind. Which fields count depends on `tagged`.
struct DdpHeader {
  bool tagged = false;
  bool last = true;
  RdmapOpcode opcode = RdmapOpcode::kSend;
  uint32_t stag = 0;            // tagged
  uint64_t offset = 0;          // tagged: TO
  uint32_t invalidate = 0;      // untagged: the STag to invalidate (opcodes 4 and 6), else 0
  uint32_t queue = 0;           // untagged: QN
  uint32_t sequence = 0;        // untagged: MSN
  uint32_t message_offset = 0;  // untagged: MO

  size_t size() const { return tagged ? kDdpTaggedSize : kDdpUntaggedSize; }
  friend bool operator==(const DdpHeader&, const DdpHeader&) = default;
};

// What the header must look like for an opcode.
bool IsTagged(RdmapOpcode opcode);
uint32_t QueueOf(RdmapOpcode opcode);  // untagged opcodes
bool IsSolicited(RdmapOpcode opcode);
bool HasInvalidate(RdmapOpcode opcode);

DdpHeader TaggedHeader(RdmapOpcode opcode, uint32_t stag, uint64_t offset, bool last);
DdpHeader UntaggedHeader(RdmapOpcode opcode, uint32_t sequence, uint32_t message_offset, bool last);

// Writes header.size() bytes, for which `out` must have room, and returns that number.
size_t EncodeDdpHeader(const DdpHeader& header, std::span<uint8_t> out);

// Reads the header of a segment and checks everything that it shows by itself: length, versions,
// opcode, T bit and queue against the opcode. Returns the error that a Terminate must carry. When
// an error is returned, *header is unspecified.
std::optional<WireError> ParseDdpHeader(std::span<const uint8_t> ulpdu, DdpHeader* header);

// A segment's header, to be shown in a Terminate: 14 or 18 bytes; none if it is incomplete.
std::span<const uint8_t> HeaderBytes(std::span<const uint8_t> ulpdu);

struct ReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_offset = 0;
  uint32_t size = 0;
  uint32_t source_stag = 0;
  uint64_t source_offset = 0;

  friend bool operator==(const ReadRequest&, const ReadRequest&) = default;
};

void EncodeReadRequest(const ReadRequest& request, std::span<uint8_t, kReadRequestSize> out);
ReadRequest DecodeReadRequest(std::span<const uint8_t, kReadRequestSize> in);

struct AtomicRequest {
  uint32_t operation = 0;  // kAtomicFetchAdd, kAtomicCompareSwap, or whatever a peer sends
  uint32_t id = 0;
  uint32_t stag = 0;
  uint64_t address = 0;
  uint64_t data = 0;       // addend, or what is swapped in
  uint64_t data_mask = 0;  // plain: 0 for FetchAdd, all ones for CmpSwap
  uint64_t compare = 0;
  uint64_t compare_mask = ~uint64_t{0};

  friend bool operator==(const AtomicRequest&, const AtomicRequest&) = default;
};

void EncodeAtomicRequest(const AtomicRequest& request, std::span<uint8_t, kAtomicRequestSize> out);
AtomicRequest DecodeAtomicRequest(std::span<const uint8_t, kAtomicRequestSize> in);
// The value that replaces `old`; the masks work as in RFC 7306 5.1.
uint64_t ApplyAtomic(const AtomicRequest& request, uint64_t old);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_DDP_H_
