// Peer to peer: which of two VIs that ask for each other dials, and whether they belong together.
//
// Each request of VipConnectPeerRequest both listens and dials, and shows a random 64-bit id. Two
// belong together when each names the other: A's local name is B's remote one and the other way
// round, and the hosts are those that were asked for. Equal ids are one VI, which never matches
// itself. When both dials are under way, the one of the larger (address, id) wins; both sides see
// that alike.
#ifndef VIADUCT_DAT_CORE_PEER_MATCH_H_
#define VIADUCT_DAT_CORE_PEER_MATCH_H_

#include <cstdint>

#include "dat/core/connection_header.h"
#include "dat/core/service_name.h"
#include "verbs/base/address.h"

namespace viaduct::core {

// What differs, in the order in which it is looked at; the numbers travel (FORMAT.md).
enum class PeerMismatch : uint8_t { kNone = 0, kReliability = 1, kTransferSize = 2, kQos = 3 };

// What a peer's header says; kNone for a number that means nothing.
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

// The request of the other side as it arrives: the address that it comes from, and its header.
bool BelongTogether(const PeerRequest& own, const verbs::Address& from,
                    const ConnectionHeader& header);
PeerMismatch Compare(const EndpointProfile& a, const EndpointProfile& b);
// The dial of `own` wins over that of the other.
bool DialWins(const PeerRequest& own, const verbs::Address& other, uint64_t other_id);

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_PEER_MATCH_H_
