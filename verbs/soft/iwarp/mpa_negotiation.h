#ifndef VIADUCT_VERBS_SOFT_IWARP_MPA_NEGOTIATION_H_
#define VIADUCT_VERBS_SOFT_IWARP_MPA_NEGOTIATION_H_

#include <cstdint>
#include <optional>

#include "verbs/soft/iwarp/mpa.h"
#include "verbs/soft/iwarp/wire_error.h"

// What a request and its reply agree on (RFC 5044 7.1, RFC 6581 4 to 6). Pure code.

namespace viaduct::verbs::iwarp {

// What this side wants and can do.
struct MpaWish {
  bool crc = true;
  uint16_t ird = 1;  // inbound reads that we will hold, 0..kMpaMaxDepth
  uint16_t ord = 1;  // outbound reads that we want to have outstanding, 0..kMpaMaxDepth
};

// The initiator's first FPDU in the peer-to-peer model.
enum class Rtr : uint8_t { kNone, kWrite, kRead };

struct MpaAgreement {
  bool crc = false;
  uint16_t ird = 0;
  uint16_t ord = 0;  // at most 1 toward a peer that does not say its depth
  Rtr rtr = Rtr::kNone;
};

// The request of an initiator, without private data. Enhanced requests offer the peer-to-peer
// model with both silent kinds of first FPDU (Write and Read), and depths of at least 1: otherwise
// a Linux server that accepts with defaults could not read. The plain request is revision 1.
MpaFrame MakeRequest(const MpaWish& wish, bool enhanced);

// The accepting reply of a responder, without private data, and what it agrees to. nullopt: the
// request wants markers and must be rejected.
struct MpaAnswer {
  MpaFrame reply;
  MpaAgreement agreement;
};
std::optional<MpaAnswer> AcceptRequest(const MpaFrame& request, const MpaWish& wish);

// The rejecting reply to a request, without private data. In the reply to an enhanced request the
// word is one that would also be valid in an accepting reply.
MpaFrame MakeReject(uint8_t revision, bool enhanced);

// What an initiator makes of the reply to its request.
struct MpaOutcome {
  enum class Kind : uint8_t {
    kAccepted,
    kRejected,  // by the peer: R=1
    kBroken,    // the reply does not answer the request; `error` is what a Terminate would say
  };
  Kind kind = Kind::kBroken;
  MpaAgreement agreement;
  WireError error;
};
MpaOutcome EvaluateReply(const MpaFrame& request, const MpaFrame& reply, const MpaWish& wish);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_MPA_NEGOTIATION_H_
