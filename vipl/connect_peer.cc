// Peer to peer: [SPEC] VipConnectPeerRequest, VipConnectPeerDone, VipConnectPeerWait.
#include "absl/cleanup/cleanup.h"
#include "compat/attributes.h"
#include "compat/net_address.h"
#include "compat/result.h"
#include "dat/core/peer_match.h"
#include "verbs/base/random.h"
#include "vipl/face.h"
#include "vipl/turn.h"
#include "vipl/vi.h"

namespace viaduct::vipl {

VIP_RETURN Vi::ConnectPeer(core::PeerRequest request, core::ConnectParameters parameters) {
  const Turn turn = TakeTurn(Turns::Use::kConnect);
  const VIP_RETURN may = CheckTurn(turn, compat::ViCall::kConnectRequest);
  if (may != VIP_SUCCESS) return may;
  BeginAttempt();
  request.profile = compat::ProfileOf(attributes());
  parameters.peer = &request;
  // Under the lock, so that a thread that sees the VI pending also finds kAsked.
  const verbs::MutexLock hold(&peer_lock_);
  const core::Error error = endpoint_->Connect(parameters);
  if (error.ok()) {
    turns_.Started();
    peer_phase_ = PeerPhase::kAsked;
  }
  return ResultOfAttempt(error);
}

VIP_RETURN Vi::PeerOutcome(bool wait, VIP_VI_ATTRIBUTES* peer) {
  bool asked;
  {
    const verbs::MutexLock hold(&peer_lock_);
    if (peer_phase_ == PeerPhase::kNone) return WrongState();
    asked = peer_phase_ == PeerPhase::kAsked;
    if (asked) {
      // Only one thread, the one that waits, gets the outcome.
      if (peer_waiter_.load()) return wait ? VIP_ERROR_RESOURCE : VIP_NOT_DONE;
      core::Event event;
      if (connect_events_->Dequeue(&event).ok()) return TellPeer(event, peer);
      if (!wait) return VIP_NOT_DONE;
      peer_waiter_.store(true);
    }
  }
  if (asked) return AwaitPeer(peer);
  // Success is reported again as long as it is true.
  if (state() != compat::ViState::kConnected) return WrongState();
  *peer = PeerAttributes();
  return VIP_SUCCESS;
}

VIP_RETURN Vi::AwaitPeer(VIP_VI_ATTRIBUTES* peer) {
  const absl::Cleanup leave = [this] {
    peer_waiter_.store(false);
    peer_waiter_.notify_all();
  };
  core::Event event;
  // The engine keeps the deadline and always decides.
  const core::Error error = connect_events_->Wait(verbs::Deadline::Infinite(), {}, &event, nullptr);
  if (!error.ok()) return compat::ResultOf(error);
  const verbs::MutexLock hold(&peer_lock_);
  return TellPeer(event, peer);
}

VIP_RETURN Vi::TellPeer(const core::Event& event, VIP_VI_ATTRIBUTES* peer) {
  VIP_RETURN result = compat::ResultOf(event.type);
  if (event.type == core::EventType::kPeerRejected) {
    result = compat::ResultOf(endpoint_->peer_mismatch());
  } else if (result == VIP_SUCCESS && state() == compat::ViState::kIdle) {
    result = WrongState();  // VipDisconnect has ended it since, or the VI has ended
  }
  if (result == VIP_SUCCESS) *peer = PeerAttributes();
  peer_phase_ = result == VIP_SUCCESS ? PeerPhase::kMet : PeerPhase::kNone;
  return result;
}

}  // namespace viaduct::vipl

namespace compat = viaduct::compat;
namespace core = viaduct::core;
using core::Ref;
using viaduct::verbs::RandomWord;
using viaduct::vipl::Control;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;
using viaduct::vipl::WaitControl;

VIPL_EXPORT VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                             VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || LocalAddr == nullptr || RemoteAddr == nullptr || Timeout == 0) {
      return VIP_INVALID_PARAMETER;
    }
    compat::Route route;
    const VIP_RETURN read = compat::ReadRoute(LocalAddr, RemoteAddr, vi->nic().address(), &route);
    if (read != VIP_SUCCESS) return read;

    core::PeerRequest peer;
    peer.id = RandomWord();
    peer.address = vi->nic().adapter().context().address();
    peer.name = route.local_name;
    peer.wanted_address = route.remote_host;
    peer.wanted_name = route.remote_name;
    core::ConnectParameters parameters;
    parameters.target.address = route.remote_host;
    parameters.target.name = route.remote_name;
    parameters.deadline = vi->nic().DeadlineAfter(Timeout);
    return vi->ConnectPeer(peer, parameters);
  });
}

VIPL_EXPORT VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle,
                                          VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || RemoteViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    return vi->PeerOutcome(/*wait=*/false, RemoteViAttribs);
  });
}

VIPL_EXPORT VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle,
                                          VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return WaitControl([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || RemoteViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    return vi->PeerOutcome(/*wait=*/true, RemoteViAttribs);
  });
}
