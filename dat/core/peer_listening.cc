#include "dat/core/peer_listening.h"

#include <algorithm>
#include <vector>

#include "dat/core/connect_attempt.h"
#include "dat/core/endpoint.h"
#include "verbs/base/log.h"

namespace viaduct::core {

using verbs::MutexLock;

Error PeerListening::Start(ConnectionManager& manager, Endpoint& endpoint,
                           const PeerRequest& request, std::unique_ptr<PeerListening>* out) {
  const std::vector<uint16_t> ports = manager.PeerPortsOf(request.name);
  return manager.RetryWhileClosing([&](bool* closing) -> Error {
    std::vector<uint16_t> ahead;
    std::shared_ptr<ConnectionManager::Port> port;  // outside the lock
    MutexLock lock(&manager.lock_);
    manager.peers_.reserve(manager.peers_.size() + 1);
    const Error error = manager.OpenFirst(ports, &ahead, &port, closing);
    if (*closing || (!error.ok() && error.code != Code::kConnQualInUse)) return error;
    if (port == nullptr) {
      verbs::Log(verbs::LogLevel::kWarn,
                 "no port is free at which a partner could ask: it can only be asked itself; "
                 "VIADUCT_PORT_COUNT says how many ports there are");
    }
    out->reset(new PeerListening(manager, endpoint, request, port));
    manager.peers_.push_back(out->get());
    return Ok();
  });
}

PeerListening::~PeerListening() {
  MutexLock lock(&manager_.lock_);
  manager_.peers_.erase(std::find(manager_.peers_.begin(), manager_.peers_.end(), this));
}

// Asks the oldest first. An attempt that this ends is destroyed outside the lock, with its port.
bool ConnectionManager::OfferToPeers(Arrival* arrival) {
  std::unique_ptr<ConnectAttempt> ended;
  MutexLock lock(&lock_);
  for (PeerListening* peer : peers_) {
    if (BelongTogether(peer->request(), arrival->incoming->peer_address(), *arrival->header) &&
        peer->endpoint().OfferPeer(peer->request().id, arrival, &ended)) {
      return true;
    }
  }
  return false;
}

}  // namespace viaduct::core
