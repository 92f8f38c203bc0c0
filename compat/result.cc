#include "compat/result.h"

#include "dat/core/handle_table.h"
#include "dat/core/protection_zone.h"

namespace viaduct::compat {
namespace {

VIP_RETURN ResultOfState(uint8_t detail) {
  switch (static_cast<core::StateDetail>(detail)) {
    case core::StateDetail::kDispatcherInUse:
    case core::StateDetail::kDispatcherHasWaiter:
    case core::StateDetail::kDispatcherNotify:
    case core::StateDetail::kDispatcherSolicited:
    case core::StateDetail::kDispatcherUnwaitable:  // its NIC has failed
    case core::StateDetail::kAdapterInUse:
    case core::StateDetail::kZoneInUse:
    case core::StateDetail::kRegionInUse:
      return VIP_ERROR_RESOURCE;
    default:
      return VIP_INVALID_STATE;
  }
}

}  // namespace

VIP_RETURN ResultOf(core::Error error) {
  switch (error.code) {
    case core::Code::kOk:
      return VIP_SUCCESS;
    case core::Code::kAbort:
    case core::Code::kInvalidHandle:
    case core::Code::kInvalidParameter:
    case core::Code::kLengthError:
    case core::Code::kNotFound:
      return VIP_INVALID_PARAMETER;
    case core::Code::kConnQualInUse:
    case core::Code::kConnQualUnavailable:
    case core::Code::kInsufficientResources:
    case core::Code::kInterrupted:
    case core::Code::kPrivilegesViolation:
    case core::Code::kQueueFull:
      return VIP_ERROR_RESOURCE;
    case core::Code::kInvalidAddress:
      return VIP_INVALID_ADDRESS;
    case core::Code::kInvalidState:
      return ResultOfState(error.detail);
    case core::Code::kProtectionViolation:
      return VIP_INVALID_PTAG;
    case core::Code::kQueueEmpty:
      return VIP_NOT_DONE;
    case core::Code::kTimeout:
      return VIP_TIMEOUT;
  }
  return VIP_ERROR_RESOURCE;
}

VIP_RETURN ResultOfZoneUse(core::Error error) {
  return error == core::InvalidHandle<core::ProtectionZone>() ? VIP_INVALID_PTAG : ResultOf(error);
}

VIP_RETURN ResultOf(core::PeerMismatch mismatch) {
  switch (mismatch) {
    case core::PeerMismatch::kReliability:
      return VIP_INVALID_RELIABILITY_LEVEL;
    case core::PeerMismatch::kTransferSize:
      return VIP_INVALID_MTU;
    case core::PeerMismatch::kQos:
      return VIP_INVALID_QOS;
    case core::PeerMismatch::kNone:
      break;
  }
  return VIP_REJECT;
}

VIP_RETURN ResultOf(core::EventType outcome) {
  switch (outcome) {
    case core::EventType::kEstablished:
      return VIP_SUCCESS;
    case core::EventType::kPeerRejected:
      return VIP_REJECT;
    case core::EventType::kNonPeerRejected:
      return VIP_NO_MATCH;
    case core::EventType::kUnreachable:
      return VIP_NOT_REACHABLE;
    // The requester has gone; the accepting side tries again.
    case core::EventType::kAcceptCompletionError:
    case core::EventType::kTimedOut:
      return VIP_TIMEOUT;
    // Another thread's VipDisconnect ended the attempt.
    case core::EventType::kDisconnected:
    case core::EventType::kBroken:
      return VIP_INVALID_STATE;
    case core::EventType::kNoResources:
    default:
      return VIP_ERROR_RESOURCE;
  }
}

}  // namespace viaduct::compat
