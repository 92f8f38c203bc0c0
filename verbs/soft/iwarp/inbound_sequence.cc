#include "verbs/soft/iwarp/inbound_sequence.h"

#include <limits>

namespace viaduct::verbs::iwarp {
namespace {

// A message of one segment on a queue of its own.
std::optional<WireError> AcceptSingle(const DdpHeader& header, uint32_t* sequence) {
  if (header.sequence != *sequence) return kUntaggedBadSequence;
  if (header.message_offset != 0) return kUntaggedBadOffset;
  if (!header.last) return kMessageTooLong;
  ++*sequence;
  return std::nullopt;
}

}  // namespace

InboundSequence::InboundSequence(uint32_t first)
    : send_sequence_(first),
      read_sequence_(first),
      terminate_sequence_(first),
      atomic_sequence_(first) {}

std::optional<WireError> InboundSequence::Accept(const DdpHeader& header, size_t payload) {
  // An empty segment that is not its message's last makes no progress: a peer could keep us busy
  // with such segments for ever.
  if (!header.last && payload == 0) return header.tagged ? kTaggedBounds : kUntaggedBadOffset;
  if (header.tagged) return std::nullopt;
  switch (header.opcode) {
    case RdmapOpcode::kReadRequest:
      if (payload < kReadRequestSize) return kBadFraming;
      if (payload > kReadRequestSize) return kMessageTooLong;
      return AcceptSingle(header, &read_sequence_);
    case RdmapOpcode::kAtomicRequest:
      if (payload != kAtomicRequestSize) return kCatastrophicStream;
      return AcceptSingle(header, &read_sequence_);
    case RdmapOpcode::kAtomicResponse:
      if (payload != kAtomicResponseSize) return kCatastrophicStream;
      return AcceptSingle(header, &atomic_sequence_);
    case RdmapOpcode::kTerminate:
      return AcceptSingle(header, &terminate_sequence_);
    default:
      return AcceptSend(header, payload);
  }
}

std::optional<WireError> InboundSequence::AcceptSend(const DdpHeader& header, size_t payload) {
  if (header.sequence != send_sequence_) return kUntaggedBadSequence;
  if (header.message_offset != send_offset_) return kUntaggedBadOffset;
  const bool immediate =
      header.opcode == RdmapOpcode::kImmediate || header.opcode == RdmapOpcode::kImmediateSolicited;
  if (immediate && (payload != kImmediateSize || !header.last)) return kCatastrophicStream;
  if (in_message_ && (header.opcode != send_opcode_ || header.invalidate != send_invalidate_)) {
    return kUnexpectedOpcode;
  }
  if (payload > std::numeric_limits<uint32_t>::max() - send_offset_) return kMessageTooLong;
  if (header.last) {
    ++send_sequence_;
    send_offset_ = 0;
    in_message_ = false;
  } else {
    send_offset_ += static_cast<uint32_t>(payload);
    in_message_ = true;
    send_opcode_ = header.opcode;
    send_invalidate_ = header.invalidate;
  }
  return std::nullopt;
}

}  // namespace viaduct::verbs::iwarp
