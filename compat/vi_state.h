// The states of a VI, and what the calls that depend on the state do in each: one enum, one table.
//
//              VipConnectRequest            accepted by the peer
//        IDLE -------------------> PENDING ----------------------> CONNECTED
//        | ^  --VipConnectAccept-> PENDING --------confirmed-----> |       |
//        | |                          | refused, timed out:        |       |
//        | +--------------------------+ receives stay posted       |       |
//        | +--VipDisconnect: everything posted is flushed----------+       |
//        | |                                                               |
//        | +--VipDisconnect-- ERROR <--peer gone, connection broken--------+
//        |                      ^--unreachable, reliable levels-- PENDING
//        +--VipDisconnect: posted receives are flushed, the VI stays Idle
//
// No state is stored here: a VI's state is its endpoint's (dat/core/endpoint_state.h), translated.
#ifndef VIADUCT_COMPAT_VI_STATE_H_
#define VIADUCT_COMPAT_VI_STATE_H_

#include <vipl.h>

#include "dat/core/endpoint_state.h"

namespace viaduct::compat {

// Values are those of VIP_VI_STATE.
enum class ViState : uint8_t {
  kIdle = VIP_STATE_IDLE,
  kConnected = VIP_STATE_CONNECTED,
  kConnectPending = VIP_STATE_CONNECT_PENDING,
  kError = VIP_STATE_ERROR,
};
inline constexpr int kViStates = 4;

enum class ViCall : uint8_t {
  kDestroy,
  kSetAttributes,
  kConnectRequest,
  kConnectAccept,
  kDisconnect,
};
inline constexpr int kViCalls = 5;

enum class ViVerdict : uint8_t {
  kGo,
  kInvalidState,  // VIP_INVALID_STATE
  kFlushOnly,     // what is posted is flushed, the state stays
};

namespace internal {
inline constexpr ViVerdict kGo = ViVerdict::kGo;
inline constexpr ViVerdict kNo = ViVerdict::kInvalidState;
inline constexpr ViVerdict kOnly = ViVerdict::kFlushOnly;

// Queries and dequeues are always allowed; posts follow the device's contract (verbs/device.h).
inline constexpr ViVerdict kViTable[kViCalls][kViStates] = {
    //                     Idle    Connected  Pending  Error
    /* Destroy */ {kGo, kNo, kNo, kNo},
    /* SetAttributes */ {kGo, kNo, kNo, kNo},
    /* ConnectRequest */ {kGo, kNo, kNo, kNo},
    /* ConnectAccept */ {kGo, kNo, kNo, kNo},
    /* Disconnect */ {kOnly, kGo, kGo, kGo},
};
}  // namespace internal

constexpr ViVerdict VerdictOf(ViState state, ViCall call) {
  return internal::kViTable[static_cast<int>(call)][static_cast<int>(state)];
}

// Defined for every state. A VI has its zone and dispatchers from the start and no reserved service
// point, so of the unconfigured, reserved and tentative states only kUnconfiguredUnconnected
// occurs, for a freed endpoint. Each of them is translated like the state that it leads to.
constexpr ViState ViStateOf(core::EndpointState state) {
  switch (state) {
    case core::EndpointState::kUnconnected:
    case core::EndpointState::kUnconfiguredUnconnected:
    case core::EndpointState::kReserved:
    case core::EndpointState::kUnconfiguredReserved:
      return ViState::kIdle;
    case core::EndpointState::kPassivePending:
    case core::EndpointState::kUnconfiguredPassive:
    case core::EndpointState::kActivePending:
    case core::EndpointState::kTentativePending:
    case core::EndpointState::kUnconfiguredTentative:
    case core::EndpointState::kCompletionPending:
      return ViState::kConnectPending;
    case core::EndpointState::kConnected:
      return ViState::kConnected;
    // VipDisconnect is abrupt, so no VI is ever seen in kDisconnectPending.
    case core::EndpointState::kDisconnectPending:
    case core::EndpointState::kDisconnected:
      return ViState::kError;
  }
  return ViState::kError;
}

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_VI_STATE_H_
