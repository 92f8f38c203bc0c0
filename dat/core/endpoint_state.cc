#include "dat/core/endpoint_state.h"

namespace viaduct::core {

// No default: the compiler names a value that was forgotten.
const char* EndpointStateName(EndpointState state) {
  switch (state) {
    case EndpointState::kUnconnected:
      return "UNCONNECTED";
    case EndpointState::kUnconfiguredUnconnected:
      return "UNCONFIGURED_UNCONNECTED";
    case EndpointState::kReserved:
      return "RESERVED";
    case EndpointState::kUnconfiguredReserved:
      return "UNCONFIGURED_RESERVED";
    case EndpointState::kPassivePending:
      return "PASSIVE_CONNECTION_PENDING";
    case EndpointState::kUnconfiguredPassive:
      return "UNCONFIGURED_PASSIVE";
    case EndpointState::kActivePending:
      return "ACTIVE_CONNECTION_PENDING";
    case EndpointState::kTentativePending:
      return "TENTATIVE_CONNECTION_PENDING";
    case EndpointState::kUnconfiguredTentative:
      return "UNCONFIGURED_TENTATIVE";
    case EndpointState::kConnected:
      return "CONNECTED";
    case EndpointState::kDisconnectPending:
      return "DISCONNECT_PENDING";
    case EndpointState::kDisconnected:
      return "DISCONNECTED";
    case EndpointState::kCompletionPending:
      return "COMPLETION_PENDING";
  }
  return "?";
}

const char* EndpointInputName(EndpointInput input) {
  switch (input) {
    case EndpointInput::kConnect:
      return "connect";
    case EndpointInput::kDuplicate:
      return "duplicate";
    case EndpointInput::kReserve:
      return "reserve";
    case EndpointInput::kUnreserve:
      return "unreserve";
    case EndpointInput::kAcceptExplicit:
      return "accept with endpoint";
    case EndpointInput::kAcceptImplicit:
      return "accept";
    case EndpointInput::kRejectImplicit:
      return "reject";
    case EndpointInput::kDisconnectAbrupt:
      return "abrupt disconnect";
    case EndpointInput::kDisconnectGraceful:
      return "graceful disconnect";
    case EndpointInput::kPostRequest:
      return "post request";
    case EndpointInput::kModifyAttributes:
      return "modify attributes";
    case EndpointInput::kModifyZone:
      return "modify zone";
    case EndpointInput::kReset:
      return "reset";
    case EndpointInput::kFree:
      return "free";
    case EndpointInput::kRequestArrived:
      return "request arrived";
    case EndpointInput::kPeerAccepted:
      return "peer accepted";
    case EndpointInput::kPeerRejected:
      return "peer rejected";
    case EndpointInput::kNonPeerRejected:
      return "refused without the peer";
    case EndpointInput::kUnreachable:
      return "unreachable";
    case EndpointInput::kTimedOut:
      return "timed out";
    case EndpointInput::kNoResources:
      return "no resources";
    case EndpointInput::kConfirmed:
      return "confirmed";
    case EndpointInput::kAcceptFailed:
      return "accept failed";
    case EndpointInput::kDrained:
      return "drained";
    case EndpointInput::kPeerDisconnected:
      return "peer disconnected";
    case EndpointInput::kBroken:
      return "broken";
  }
  return "?";
}

}  // namespace viaduct::core
