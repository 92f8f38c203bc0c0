// Peer to peer: whether two VIs that request each other belong together, and which of them dials.
//
// Each request of VipConnectPeerRequest both listens and dials, and shows a random 64-bit id. Two
// requests belong together if each names the other: A's local name is B's remote one and vice
// versa, and the hosts are those that were requested. Equal ids are one VI, which never matches
// itself. If both dials are under way, the one of the larger (address, id) wins; both sides come to
// the same result.
#ifndef VIADUCT_DAT_CORE_PEER_MATCH_H_
#define VIADUCT_DAT_CORE_PEER_MATCH_H_

#include <cstdint>

#include "dat/core/connection_header.h"
#include "dat/core/service_name.h"
#include "verbs/base/address.h"

namespace viaduct::core {

// What differs, in the order of checking; the numbers are sent to the peer (FORMAT.md).
enum class PeerMismatch : uint8_t { kNone = 0, kReliability = 1, kTransferSize = 2, kQos = 3 };

// Translates the number in a peer's header; kNone for an unknown one.
PeerMismatch MismatchOf(uint8_t number);

// One request for a peer.
struct PeerRequest {
  uint64_t id = 0;
  verbs::Address address;  // of this side
  ServiceName name;        // its own
  verbs::Address wanted_address;
  ServiceName wanted_name;
  EndpointProfile profile;
};

// Whether the request with `header` that arrives from the address `from` belongs to `own`.
bool BelongTogether(const PeerRequest& own, const verbs::Address& from,
                    const ConnectionHeader& header);
PeerMismatch Compare(const EndpointProfile& a, const EndpointProfile& b);
// Whether the dial of `own` wins over that of the peer.
bool DialWins(const PeerRequest& own, const verbs::Address& other, uint64_t other_id);

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_PEER_MATCH_H_
