#ifndef VIADUCT_VERBS_SOFT_IWARP_INBOUND_SEQUENCE_H_
#define VIADUCT_VERBS_SOFT_IWARP_INBOUND_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/wire_error.h"

// Checks the order of the segments that arrive on one connection. TCP keeps the sender's order, so
// that at any moment only one sequence number and one offset are valid for each queue. What the
// segments touch (buffers, regions, outstanding reads) is not checked here.

namespace viaduct::verbs::iwarp {

class InboundSequence {
 public:
  InboundSequence() = default;
  // For tests of the wrap: the sequence number that every queue expects first.
  explicit InboundSequence(uint32_t first);

  // Checks a segment with `payload` bytes after its header against those before it, and counts it.
  // Returns the error that a Terminate must carry; after an error nothing more may be accepted.
  std::optional<WireError> Accept(const DdpHeader& header, size_t payload);

  // A message on queue 0 has begun and not ended.
  bool in_message() const { return in_message_; }

 private:
  std::optional<WireError> AcceptSend(const DdpHeader& header, size_t payload);

  uint32_t send_sequence_ = kFirstSequence;
  uint32_t read_sequence_ = kFirstSequence;
  uint32_t terminate_sequence_ = kFirstSequence;
  uint32_t atomic_sequence_ = kFirstSequence;  // of responses
  uint32_t send_offset_ = 0;                   // bytes so far of the message on queue 0
  bool in_message_ = false;
  RdmapOpcode send_opcode_ = RdmapOpcode::kSend;  // its opcode and STag, equal in all its segments
  uint32_t send_invalidate_ = 0;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_INBOUND_SEQUENCE_H_
