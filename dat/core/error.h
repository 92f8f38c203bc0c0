// The results of calls into the engine. The function that first detects a condition decides on its
// code.
//
// Codes are translated in two places: to VIP_RETURN in compat, to DAT_RETURN (type, subtype, per
// version) in dat/api. Nothing translates between the faces.
#ifndef VIADUCT_DAT_CORE_ERROR_H_
#define VIADUCT_DAT_CORE_ERROR_H_

#include <cstdint>

namespace viaduct::core {

enum class Code : uint8_t {
  kOk,
  kAbort,  // the object was destroyed under a waiter
  kConnQualInUse,
  kConnQualUnavailable,
  kInsufficientResources,  // detail: Resource
  kInterrupted,
  kInvalidAddress,
  kInvalidHandle,     // detail: ObjectType that was expected
  kInvalidParameter,  // detail: number of the argument in DAT's function, from 1 (0: none)
  kInvalidState,      // detail: StateDetail, or an endpoint's state
  kLengthError,
  kNotFound,  // no adapter of that name
  kPrivilegesViolation,
  kProtectionViolation,
  kQueueEmpty,
  kQueueFull,
  kTimeout,
};

enum class Resource : uint8_t {
  kNone,
  kMemory,
  kDevice,
  kEndpoint,
  kRegion,
  kZone,
  kSharedReceives
};

// Why an object's state forbids a call. The first values are those of EndpointState.
enum class StateDetail : uint8_t {
  kNone = 64,
  kDispatcherInUse,
  kDispatcherHasWaiter,
  kDispatcherUnwaitable,
  kDispatcherNotify,     // a stream is UNSIGNALLED: no thresholds
  kDispatcherSolicited,  // a stream is SOLICITED_WAIT: no thresholds
  kNotifierInUse,
  kAdapterInUse,
  kZoneInUse,
  kRegionInUse,
  kSharedReceivesInUse,
  kEndpointZone,     // the endpoint lacks a protection zone
  kEndpointConnect,  // the endpoint lacks a dispatcher for connection events
};

struct [[nodiscard]] Error {
  Code code = Code::kOk;
  uint8_t detail = 0;

  constexpr Error() = default;
  constexpr Error(Code c, uint8_t d = 0) : code(c), detail(d) {}  // NOLINT: implicit on purpose
  constexpr bool ok() const { return code == Code::kOk; }
  friend constexpr bool operator==(Error a, Error b) {
    return a.code == b.code && a.detail == b.detail;
  }
};

inline constexpr Error Ok() { return Error(); }
inline constexpr Error InvalidParameter(uint8_t argument) {
  return Error(Code::kInvalidParameter, argument);
}
inline constexpr Error InvalidState(StateDetail why) {
  return Error(Code::kInvalidState, static_cast<uint8_t>(why));
}
inline constexpr Error OutOf(Resource what) {
  return Error(Code::kInsufficientResources, static_cast<uint8_t>(what));
}

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_ERROR_H_
