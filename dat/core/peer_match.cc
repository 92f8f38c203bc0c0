#include "dat/core/peer_match.h"

#include <string>

namespace viaduct::core {

bool BelongTogether(const PeerRequest& own, const verbs::Address& from,
                    const ConnectionHeader& header) {
  // A request for the loopback address is for this host.
  const bool from_there =
      from == own.wanted_address || (own.wanted_address.IsLoopback() && from == own.address);
  return header.kind == HeaderKind::kViplPeerRequest && header.peer_id != own.id &&
         header.remote == own.name && header.local == own.wanted_name && from_there;
}

PeerMismatch Compare(const EndpointProfile& a, const EndpointProfile& b) {
  if (a.any || b.any) return PeerMismatch::kNone;
  if (a.reliability != b.reliability) return PeerMismatch::kReliability;
  if (a.max_transfer_size != b.max_transfer_size) return PeerMismatch::kTransferSize;
  if (a.qos != b.qos) return PeerMismatch::kQos;
  return PeerMismatch::kNone;
}

PeerMismatch MismatchOf(uint8_t number) {
  const auto mismatch = static_cast<PeerMismatch>(number);
  switch (mismatch) {
    case PeerMismatch::kReliability:
    case PeerMismatch::kTransferSize:
    case PeerMismatch::kQos:
      return mismatch;
    case PeerMismatch::kNone:
      break;
  }
  return PeerMismatch::kNone;
}

bool DialWins(const PeerRequest& own, const verbs::Address& other, uint64_t other_id) {
  const std::string mine = own.address.ToString(), theirs = other.ToString();
  return mine != theirs ? mine > theirs : own.id > other_id;
}

}  // namespace viaduct::core
