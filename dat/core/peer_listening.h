// PeerListening: the listening half of a peer-to-peer request, for as long as the object lives.
//
// Requests that arrive for the name are offered to the endpoint (Endpoint::OfferPeer) under the
// manager's lock. So a PeerListening is made and destroyed without that lock and without an
// endpoint's, and its endpoint outlives it.
#ifndef VIADUCT_DAT_CORE_PEER_LISTENING_H_
#define VIADUCT_DAT_CORE_PEER_LISTENING_H_

#include <memory>

#include "dat/core/connection_manager.h"
#include "dat/core/error.h"
#include "dat/core/peer_match.h"

namespace viaduct::core {

class Endpoint;

class PeerListening {
 public:
  // Listens on the first of the name's ports that is free or this process's; if others have them
  // all, on none, since it is enough that one of the two peers can be dialled.
  // kConnQualUnavailable, kInsufficientResources. May block; not on the executor.
  static Error Start(ConnectionManager& manager, Endpoint& endpoint, const PeerRequest& request,
                     std::unique_ptr<PeerListening>* out);
  ~PeerListening();
  PeerListening(const PeerListening&) = delete;
  PeerListening& operator=(const PeerListening&) = delete;

  const PeerRequest& request() const { return request_; }
  Endpoint& endpoint() const { return endpoint_; }

 private:
  PeerListening(ConnectionManager& manager, Endpoint& endpoint, const PeerRequest& request,
                std::shared_ptr<ConnectionManager::Port> port)
      : manager_(manager), endpoint_(endpoint), request_(request), port_(std::move(port)) {}

  ConnectionManager& manager_;
  Endpoint& endpoint_;
  const PeerRequest request_;
  const std::shared_ptr<ConnectionManager::Port> port_;  // null: listens nowhere
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_PEER_LISTENING_H_
