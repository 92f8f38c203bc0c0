#include "verbs/soft/iwarp/mpa_negotiation.h"

#include <algorithm>

namespace viaduct::verbs::iwarp {
namespace {

// Reads in flight toward a peer that did not say how many it holds: adapters end a connection that
// has one too many.
constexpr uint16_t kReadsUnsaid = 1;

}  // namespace

MpaFrame MakeRequest(const MpaWish& wish, bool enhanced) {
  MpaFrame request;
  request.crc = wish.crc;
  if (!enhanced) {
    request.revision = 1;
    return request;
  }
  request.depths = MpaDepths{.peer_to_peer = true,
                             .rtr_write = true,
                             .rtr_read = true,
                             .ird = std::max<uint16_t>(wish.ird, 1),
                             .ord = std::max<uint16_t>(wish.ord, 1)};
  return request;
}

std::optional<MpaAnswer> AcceptRequest(const MpaFrame& request, const MpaWish& wish) {
  if (request.markers) return std::nullopt;
  MpaAnswer answer;
  answer.agreement.crc = request.crc || wish.crc;
  answer.agreement.ird = wish.ird;
  answer.agreement.ord = std::min(wish.ord, kReadsUnsaid);
  answer.reply.kind = MpaKind::kReply;
  answer.reply.revision = request.revision;
  answer.reply.crc = answer.agreement.crc;
  if (!request.depths.has_value()) return answer;

  const MpaDepths& asked = *request.depths;
  MpaDepths& reply = answer.reply.depths.emplace();
  if (asked.peer_to_peer) {
    reply.peer_to_peer = true;
    reply.rtr_write = asked.rtr_write || !asked.rtr_read;
    reply.rtr_read = !reply.rtr_write;
    answer.agreement.rtr = reply.rtr_write ? Rtr::kWrite : Rtr::kRead;
  }
  if (asked.ord == kMpaDepthUnspecified) {
    reply.ird = kMpaDepthUnspecified;
  } else {
    answer.agreement.ird = reply.ird = std::min(asked.ord, wish.ird);
  }
  if (asked.ird == kMpaDepthUnspecified) {
    reply.ord = kMpaDepthUnspecified;
  } else {
    answer.agreement.ord = reply.ord = std::min(asked.ird, wish.ord);
  }
  // The zero-length read that was agreed on needs a place (RFC 6581 4).
  if (reply.rtr_read && reply.ird == 0) answer.agreement.ird = reply.ird = 1;
  return answer;
}

MpaFrame MakeReject(uint8_t revision, bool enhanced) {
  MpaFrame reply;
  reply.kind = MpaKind::kReply;
  reply.revision = revision;
  reply.reject = true;
  // Linux irdma reads the word before R, and does not accept one without A, C or IRD as an answer.
  if (enhanced) reply.depths = MpaDepths{.peer_to_peer = true, .rtr_write = true, .ird = 1};
  return reply;
}

MpaOutcome EvaluateReply(const MpaFrame& request, const MpaFrame& reply, const MpaWish& wish) {
  using Kind = MpaOutcome::Kind;
  if (reply.reject) return {Kind::kRejected, {}, {}};
  const bool enhanced = request.depths.has_value();
  // We do not insert markers, and an enhanced request must have an enhanced reply.
  if (reply.markers || enhanced != reply.depths.has_value()) {
    return {Kind::kBroken, {}, kBadStartup};
  }
  MpaAgreement agreement;
  agreement.crc = request.crc || reply.crc;
  agreement.ird = wish.ird;
  agreement.ord = std::min(wish.ord, kReadsUnsaid);
  if (!enhanced) return {Kind::kAccepted, agreement, {}};

  const MpaDepths& ours = *request.depths;
  const MpaDepths& theirs = *reply.depths;
  agreement.ird = ours.ird;
  if (theirs.ird != kMpaDepthUnspecified) agreement.ord = std::min(wish.ord, theirs.ird);
  if (theirs.ord != kMpaDepthUnspecified && theirs.ord > ours.ird) {
    return {Kind::kBroken, {}, kInsufficientIrd};
  }
  if (ours.peer_to_peer && theirs.peer_to_peer) {
    if (theirs.rtr_write && ours.rtr_write) {
      agreement.rtr = Rtr::kWrite;
    } else if (theirs.rtr_read && ours.rtr_read) {
      agreement.rtr = Rtr::kRead;
    } else {
      return {Kind::kBroken, {}, kNoMatchingRtr};
    }
  }
  return {Kind::kAccepted, agreement, {}};
}

}  // namespace viaduct::verbs::iwarp
