// Peer to peer: [SPEC] VipConnectPeerRequest, VipConnectPeerDone, VipConnectPeerWait.
#include <optional>
#include <random>

#include "compat/attributes.h"
#include "compat/net_address.h"
#include "compat/result.h"
#include "dat/core/peer_match.h"
#include "vipl/api.h"
#include "vipl/turn.h"
#include "vipl/vi.h"

namespace viaduct::vipl {

VIP_RETURN Vi::ConnectPeer(const core::ConnectParameters& parameters) {
  const Turn turn(&connecting_);
  if (!turn.is_mine() || !Allows(compat::ViCall::kConnectRequest)) return VIP_INVALID_STATE;
  DrainConnectEvents();
  peer_phase_.store(PeerPhase::kAsked);
  const core::Error error = endpoint_->Connect(parameters);
  if (!error.ok()) peer_phase_.store(PeerPhase::kNone);
  return compat::ResultOf(error);
}

VIP_RETURN Vi::PeerOutcome(bool wait, VIP_VI_ATTRIBUTES* peer) {
  switch (peer_phase_.load()) {
    case PeerPhase::kNone:
      return VIP_INVALID_STATE;
    case PeerPhase::kMet:  // told again as long as it is true
      if (state() != compat::ViState::kConnected) return VIP_INVALID_STATE;
      *peer = compat::PeerAttributesOf(endpoint_->peer_profile(), attributes());
      return VIP_SUCCESS;
    case PeerPhase::kAsked:
      break;
  }
  core::Event event;
  if (wait) {
    // The engine has the deadline and always decides. One thread has the outcome.
    core::EventDispatcher::WaitOptions options;
    options.exclusive = true;
    const core::Error error =
        connect_events_->Wait(verbs::Deadline::Infinite(), options, &event, nullptr);
    if (!error.ok()) return compat::ResultOf(error);
  } else if (!connect_events_->Dequeue(&event).ok()) {
    return VIP_NOT_DONE;  // also while another thread waits for it
  }
  VIP_RETURN result = compat::ResultOf(event.type);
  if (event.type == core::EventType::kPeerRejected) {
    result = compat::ResultOf(endpoint_->peer_mismatch());
  }
  if (result == VIP_SUCCESS) {
    *peer = compat::PeerAttributesOf(endpoint_->peer_profile(), attributes());
  }
  peer_phase_.store(result == VIP_SUCCESS ? PeerPhase::kMet : PeerPhase::kNone);
  return result;
}

}  // namespace viaduct::vipl

namespace {

namespace compat = viaduct::compat;
namespace core = viaduct::core;
using core::Ref;
using viaduct::vipl::Call;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;

uint64_t RandomId() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                             VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout) {
  return Call([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || LocalAddr == nullptr || RemoteAddr == nullptr || Timeout == 0) {
      return VIP_INVALID_PARAMETER;
    }
    const auto local_name = compat::DiscriminatorOf(LocalAddr);
    const auto remote_name = compat::DiscriminatorOf(RemoteAddr);
    const auto remote_host = compat::HostOf(RemoteAddr);
    if (!compat::HostIs(LocalAddr, vi->nic().address())) return VIP_INVALID_ADDRESS;
    if (!local_name || !remote_name || !remote_host) return VIP_INVALID_PARAMETER;

    core::PeerRequest peer;
    peer.id = RandomId();
    peer.address = vi->nic().adapter().context().address();
    peer.name = *local_name;
    peer.wanted_address = *remote_host;
    peer.wanted_name = *remote_name;
    peer.profile = compat::ProfileOf(vi->attributes());
    core::ConnectParameters parameters;
    parameters.target.address = *remote_host;
    parameters.target.name = *remote_name;
    parameters.deadline = vi->nic().DeadlineAfter(Timeout);
    parameters.peer = &peer;
    return vi->ConnectPeer(parameters);
  });
}

VIPL_EXPORT VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle,
                                          VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return Call([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || RemoteViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    return vi->PeerOutcome(/*wait=*/false, RemoteViAttribs);
  });
}

VIPL_EXPORT VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle,
                                          VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return Call([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || RemoteViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    return vi->PeerOutcome(/*wait=*/true, RemoteViAttribs);
  });
}
