#include "dat/api/return_code.h"

#include <cstdint>

#include "dat/core/endpoint_state.h"
#include "dat/core/object.h"
#include "gtest/gtest.h"

namespace viaduct::dat {
namespace {

using core::Code;
using core::Error;

constexpr DAT_UINT32 kClassMask = 0xC0000000;

TEST(ReturnCode, SuccessIsZero) { EXPECT_EQ(ToReturn(core::Ok()), DAT_RETURN{DAT_SUCCESS}); }

TEST(ReturnCode, EveryFailureHasClassErrorAndAType) {
  for (int code = 1; code <= static_cast<int>(Code::kTimeout); ++code) {
    for (int detail = 0; detail < 256; ++detail) {
      const DAT_RETURN value =
          ToReturn(Error(static_cast<Code>(code), static_cast<uint8_t>(detail)));
      EXPECT_EQ(value & kClassMask, DAT_UINT32{DAT_CLASS_ERROR}) << code << ' ' << detail;
      EXPECT_NE(DAT_GET_TYPE(value), DAT_UINT32{DAT_SUCCESS}) << code << ' ' << detail;
    }
  }
}

struct Case {
  Error error;
  DAT_UINT32 type;
  DAT_UINT32 subtype;
};

Error Resource(core::Resource resource) { return core::OutOf(resource); }
Error Handle(core::ObjectType type) {
  return Error(Code::kInvalidHandle, static_cast<uint8_t>(type));
}
Error State(core::EndpointState state) {
  return Error(Code::kInvalidState, static_cast<uint8_t>(state));
}

const Case kCases[] = {
    {Code::kAbort, DAT_ABORT, DAT_NO_SUBTYPE},
    {Code::kConnQualInUse, DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE},
    {Code::kConnQualUnavailable, DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE},
    {Code::kInterrupted, DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE},
    {Code::kInvalidAddress, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED},
    {Code::kLengthError, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE},
    {Code::kNotFound, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED},
    {Code::kPrivilegesViolation, DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE},
    {Code::kProtectionViolation, DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE},
    {Code::kQueueEmpty, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE},
    {Code::kQueueFull, DAT_QUEUE_FULL, DAT_NO_SUBTYPE},
    {Code::kTimeout, DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE},
    {Resource(core::Resource::kNone), DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE},
    {Resource(core::Resource::kMemory), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY},
    {Resource(core::Resource::kDevice), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE},
    {Resource(core::Resource::kEndpoint), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP},
    {Resource(core::Resource::kRegion), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION},
    {Resource(core::Resource::kSharedReceives), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ},
    {Resource(core::Resource::kZone), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_PROTECTION_DOMAIN},
    {Handle(core::ObjectType::kAdapter), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA},
    {Handle(core::ObjectType::kProtectionZone), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ},
    {Handle(core::ObjectType::kMemoryRegion), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR},
    {Handle(core::ObjectType::kEventDispatcher), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1},
    {Handle(core::ObjectType::kEndpoint), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP},
    {Handle(core::ObjectType::kPublicServicePoint), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP},
    {Handle(core::ObjectType::kReservedServicePoint), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP},
    {Handle(core::ObjectType::kConnectionRequest), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR},
    {Handle(core::ObjectType::kNotifier), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO},
    {Handle(core::ObjectType::kSharedReceiveQueue), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ},
    {Handle(core::ObjectType::kMemoryWindow), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR},
    {Handle(core::ObjectType::kNone), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1},
    {core::InvalidParameter(0), DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE},
    {core::InvalidParameter(1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1},
    {core::InvalidParameter(5), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5},
    {core::InvalidParameter(10), DAT_INVALID_PARAMETER, DAT_INVALID_ARG10},
    {core::InvalidParameter(11), DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE},
    {State(core::EndpointState::kUnconnected), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED},
    {State(core::EndpointState::kUnconfiguredUnconnected), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_UNCONFIGURED},
    {State(core::EndpointState::kReserved), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED},
    {State(core::EndpointState::kUnconfiguredReserved), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_UNCONFRESERVED},
    {State(core::EndpointState::kPassivePending), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_PASSCONNPENDING},
    {State(core::EndpointState::kUnconfiguredPassive), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_UNCONFPASSIVE},
    {State(core::EndpointState::kActivePending), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_ACTCONNPENDING},
    {State(core::EndpointState::kTentativePending), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_TENTCONNPENDING},
    {State(core::EndpointState::kUnconfiguredTentative), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_UNCONFTENTATIVE},
    {State(core::EndpointState::kConnected), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED},
    {State(core::EndpointState::kDisconnectPending), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_DISCPENDING},
    {State(core::EndpointState::kDisconnected), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_DISCONNECTED},
    {State(core::EndpointState::kCompletionPending), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_COMPLPENDING},
    {core::InvalidState(core::StateDetail::kNone), DAT_INVALID_STATE, DAT_NO_SUBTYPE},
    {core::InvalidState(core::StateDetail::kDispatcherInUse), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EVD_IN_USE},
    {core::InvalidState(core::StateDetail::kDispatcherHasWaiter), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EVD_WAITER},
    {core::InvalidState(core::StateDetail::kDispatcherUnwaitable), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EVD_UNWAITABLE},
    {core::InvalidState(core::StateDetail::kDispatcherNotify), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EVD_CONFIG_NOTIFY},
    {core::InvalidState(core::StateDetail::kDispatcherSolicited), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EVD_CONFIG_SOLICITED},
    {core::InvalidState(core::StateDetail::kNotifierInUse), DAT_INVALID_STATE,
     DAT_INVALID_STATE_CNO_IN_USE},
    {core::InvalidState(core::StateDetail::kAdapterInUse), DAT_INVALID_STATE,
     DAT_INVALID_STATE_IA_IN_USE},
    {core::InvalidState(core::StateDetail::kZoneInUse), DAT_INVALID_STATE,
     DAT_INVALID_STATE_PZ_IN_USE},
    {core::InvalidState(core::StateDetail::kRegionInUse), DAT_INVALID_STATE,
     DAT_INVALID_STATE_LMR_IN_USE},
    {core::InvalidState(core::StateDetail::kSharedReceivesInUse), DAT_INVALID_STATE,
     DAT_INVALID_STATE_SRQ_IN_USE},
    {core::InvalidState(core::StateDetail::kEndpointZone), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_PZ},
    {core::InvalidState(core::StateDetail::kEndpointConnect), DAT_INVALID_STATE,
     DAT_INVALID_STATE_EP_EVD_CONNECT},
};

TEST(ReturnCode, EveryCodeHasItsTypeAndSubtype) {
  for (const Case& c : kCases) {
    EXPECT_EQ(ToReturn(c.error), Failure(c.type, c.subtype))
        << static_cast<int>(c.error.code) << ' ' << static_cast<int>(c.error.detail);
  }
}

TEST(ReturnCode, CasesCoverEveryCode) {
  for (int code = 1; code <= static_cast<int>(Code::kTimeout); ++code) {
    bool covered = false;
    for (const Case& c : kCases) covered |= static_cast<int>(c.error.code) == code;
    EXPECT_TRUE(covered) << code;
  }
}

// The numbers differ between the versions: 2.0 inserted two subtypes.
TEST(ReturnCode, SubtypesAreTheVersions) {
#if VIADUCT_DAT_ABI == 12
  EXPECT_EQ(BadParameter(1), 0x80060024u);
  EXPECT_EQ(ToReturn(State(core::EndpointState::kUnconnected)), 0x8007002Eu);
  EXPECT_EQ(ToReturn(Code::kNotFound), 0x800A0062u);
#else
  EXPECT_EQ(BadParameter(1), 0x80060025u);
  EXPECT_EQ(ToReturn(State(core::EndpointState::kUnconnected)), 0x8007002Fu);
  EXPECT_EQ(ToReturn(Code::kNotFound), 0x800A0064u);
#endif
}

}  // namespace
}  // namespace viaduct::dat
