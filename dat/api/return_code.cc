#include "dat/api/return_code.h"

#include "dat/core/endpoint_state.h"
#include "dat/core/object.h"

namespace viaduct::dat {
namespace {

DAT_UINT32 ResourceSubtype(uint8_t detail) {
  switch (static_cast<core::Resource>(detail)) {
    case core::Resource::kMemory:
      return DAT_RESOURCE_MEMORY;
    case core::Resource::kDevice:
      return DAT_RESOURCE_DEVICE;
    case core::Resource::kEndpoint:
      return DAT_RESOURCE_TEP;
    case core::Resource::kRegion:
      return DAT_RESOURCE_MEMORY_REGION;
    case core::Resource::kSharedReceives:
      return DAT_RESOURCE_SRQ;
    case core::Resource::kZone:
      return DAT_RESOURCE_PROTECTION_DOMAIN;
    case core::Resource::kNone:
      break;
  }
  return DAT_NO_SUBTYPE;
}

DAT_UINT32 HandleSubtype(uint8_t detail) {
  switch (static_cast<core::ObjectType>(detail)) {
    case core::ObjectType::kAdapter:
      return DAT_INVALID_HANDLE_IA;
    case core::ObjectType::kProtectionZone:
      return DAT_INVALID_HANDLE_PZ;
    case core::ObjectType::kMemoryRegion:
      return DAT_INVALID_HANDLE_LMR;
    case core::ObjectType::kEndpoint:
      return DAT_INVALID_HANDLE_EP;
    case core::ObjectType::kPublicServicePoint:
      return DAT_INVALID_HANDLE_PSP;
    case core::ObjectType::kReservedServicePoint:
      return DAT_INVALID_HANDLE_RSP;
    case core::ObjectType::kConnectionRequest:
      return DAT_INVALID_HANDLE_CR;
    case core::ObjectType::kNotifier:
      return DAT_INVALID_HANDLE_CNO;
    case core::ObjectType::kSharedReceiveQueue:
      return DAT_INVALID_HANDLE_SRQ;
    case core::ObjectType::kMemoryWindow:
      return DAT_INVALID_HANDLE_RMR;
    case core::ObjectType::kEventDispatcher:  // which of five, only the call knows
    case core::ObjectType::kCommonServicePoint:
    case core::ObjectType::kNic:
    case core::ObjectType::kVi:
    case core::ObjectType::kCompletionQueue:
    case core::ObjectType::kNone:
      break;
  }
  return DAT_INVALID_HANDLE1;
}

DAT_UINT32 EndpointStateSubtype(core::EndpointState state) {
  switch (state) {
    case core::EndpointState::kUnconnected:
      return DAT_INVALID_STATE_EP_UNCONNECTED;
    case core::EndpointState::kUnconfiguredUnconnected:
      return DAT_INVALID_STATE_EP_UNCONFIGURED;
    case core::EndpointState::kReserved:
      return DAT_INVALID_STATE_EP_RESERVED;
    case core::EndpointState::kUnconfiguredReserved:
      return DAT_INVALID_STATE_EP_UNCONFRESERVED;
    case core::EndpointState::kPassivePending:
      return DAT_INVALID_STATE_EP_PASSCONNPENDING;
    case core::EndpointState::kUnconfiguredPassive:
      return DAT_INVALID_STATE_EP_UNCONFPASSIVE;
    case core::EndpointState::kActivePending:
      return DAT_INVALID_STATE_EP_ACTCONNPENDING;
    case core::EndpointState::kTentativePending:
      return DAT_INVALID_STATE_EP_TENTCONNPENDING;
    case core::EndpointState::kUnconfiguredTentative:
      return DAT_INVALID_STATE_EP_UNCONFTENTATIVE;
    case core::EndpointState::kConnected:
      return DAT_INVALID_STATE_EP_CONNECTED;
    case core::EndpointState::kDisconnectPending:
      return DAT_INVALID_STATE_EP_DISCPENDING;
    case core::EndpointState::kDisconnected:
      return DAT_INVALID_STATE_EP_DISCONNECTED;
    case core::EndpointState::kCompletionPending:
      return DAT_INVALID_STATE_EP_COMPLPENDING;
  }
  return DAT_NO_SUBTYPE;
}

DAT_UINT32 StateSubtype(uint8_t detail) {
  if (detail < core::kEndpointStates) {
    return EndpointStateSubtype(static_cast<core::EndpointState>(detail));
  }
  switch (static_cast<core::StateDetail>(detail)) {
    case core::StateDetail::kDispatcherInUse:
      return DAT_INVALID_STATE_EVD_IN_USE;
    case core::StateDetail::kDispatcherHasWaiter:
      return DAT_INVALID_STATE_EVD_WAITER;
    case core::StateDetail::kDispatcherUnwaitable:
      return DAT_INVALID_STATE_EVD_UNWAITABLE;
    case core::StateDetail::kDispatcherNotify:
      return DAT_INVALID_STATE_EVD_CONFIG_NOTIFY;
    case core::StateDetail::kDispatcherSolicited:
      return DAT_INVALID_STATE_EVD_CONFIG_SOLICITED;
    case core::StateDetail::kNotifierInUse:
      return DAT_INVALID_STATE_CNO_IN_USE;
    case core::StateDetail::kAdapterInUse:
      return DAT_INVALID_STATE_IA_IN_USE;
    case core::StateDetail::kZoneInUse:
      return DAT_INVALID_STATE_PZ_IN_USE;
    case core::StateDetail::kRegionInUse:
      return DAT_INVALID_STATE_LMR_IN_USE;
    case core::StateDetail::kSharedReceivesInUse:
      return DAT_INVALID_STATE_SRQ_IN_USE;
    case core::StateDetail::kEndpointZone:
      return DAT_INVALID_STATE_EP_PZ;
    case core::StateDetail::kEndpointConnect:
      return DAT_INVALID_STATE_EP_EVD_CONNECT;
    case core::StateDetail::kNone:
      break;
  }
  return DAT_NO_SUBTYPE;
}

}  // namespace

DAT_RETURN FailureOf(core::Error error) {
  switch (error.code) {
    case core::Code::kOk:
      return DAT_SUCCESS;
    case core::Code::kAbort:
      return Failure(DAT_ABORT);
    case core::Code::kConnQualInUse:
      return Failure(DAT_CONN_QUAL_IN_USE);
    case core::Code::kConnQualUnavailable:
      return Failure(DAT_CONN_QUAL_UNAVAILABLE);
    case core::Code::kInsufficientResources:
      return Failure(DAT_INSUFFICIENT_RESOURCES, ResourceSubtype(error.detail));
    case core::Code::kInterrupted:
      return Failure(DAT_INTERRUPTED_CALL);
    case core::Code::kInvalidAddress:
      return Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
    case core::Code::kInvalidHandle:
      return BadHandle(HandleSubtype(error.detail));
    case core::Code::kInvalidParameter:
      return error.detail >= 1 && error.detail <= 10 ? BadParameter(error.detail)
                                                     : Failure(DAT_INVALID_PARAMETER);
    case core::Code::kInvalidState:
      return Failure(DAT_INVALID_STATE, StateSubtype(error.detail));
    case core::Code::kLengthError:
      return Failure(DAT_LENGTH_ERROR);
    case core::Code::kNotFound:
      return Failure(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    case core::Code::kPrivilegesViolation:
      return Failure(DAT_PRIVILEGES_VIOLATION);
    case core::Code::kProtectionViolation:
      return Failure(DAT_PROTECTION_VIOLATION);
    case core::Code::kQueueEmpty:
      return Failure(DAT_QUEUE_EMPTY);
    case core::Code::kQueueFull:
      return Failure(DAT_QUEUE_FULL);
    case core::Code::kTimeout:
      return Failure(DAT_TIMEOUT_EXPIRED);
  }
  return Failure(DAT_INTERNAL_ERROR);
}

}  // namespace viaduct::dat
