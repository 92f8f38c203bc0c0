// The endpoint's states: one enum, one table.
//
//   state x input -> verdict, next state, effects
//
// Code asks Next() and does what the transition says; there are no flags beside the state. Values
// are those of DAT_EP_STATE.
//
//                rsp_create            request             accept(NULL)
//   UNCONNECTED ------------> RESERVED -------> PASSIVE ---------------+
//     |   |  ^                   |rsp_free        |reject              |
//     |   |  +-------------------+----------------+                    v
//     |   |                  accept(ep)                       COMPLETION_PENDING
//     |   +----------------------------------------------------------> |  |
//     |connect                         TENTATIVE --accept(NULL)------> |  |confirmed
//     v                  accepted                                      |  v
//   ACTIVE_PENDING ----------------------------------------------------|> CONNECTED
//     |refused, timed out, disconnect                                  |    | |graceful
//     v                                                     failed     |    | v
//   DISCONNECTED <-----------------------------------------------------+    | DISCONNECT_PENDING
//     ^  |reset -> UNCONNECTED        abrupt, peer, broken                  |   |drained, abrupt
//     +--+------------------------------------------------------------------+---+
#ifndef VIADUCT_DAT_CORE_ENDPOINT_STATE_H_
#define VIADUCT_DAT_CORE_ENDPOINT_STATE_H_

#include <cstdint>

#include "dat/core/error.h"

namespace viaduct::core {

enum class EndpointState : uint8_t {
  kUnconnected,
  // In DAT, UNCONFIGURED_* is an endpoint without zone or dispatchers. The engine uses only this
  // one, for an endpoint that was freed and has given up its parts.
  kUnconfiguredUnconnected,
  kReserved,
  kUnconfiguredReserved,
  kPassivePending,
  kUnconfiguredPassive,
  kActivePending,
  kTentativePending,
  kUnconfiguredTentative,
  kConnected,
  kDisconnectPending,
  kDisconnected,
  kCompletionPending,
};
inline constexpr int kEndpointStates = 13;

enum class EndpointInput : uint8_t {
  // Calls.
  kConnect,         // connect, and dup_connect's first endpoint
  kDuplicate,       // dup_connect's second endpoint
  kReserve,         // rsp_create
  kUnreserve,       // rsp_free
  kAcceptExplicit,  // cr_accept(cr, ep)
  kAcceptImplicit,  // cr_accept(cr, NULL): the request's own endpoint
  kRejectImplicit,  // cr_reject of a request that has an endpoint
  kDisconnectAbrupt,
  kDisconnectGraceful,
  kPostRequest,  // send, RDMA, bind
  kModifyAttributes,
  kModifyZone,
  kReset,
  kFree,
  // What the wire or the timer says.
  kRequestArrived,  // on the reserved service point
  kPeerAccepted,
  kPeerRejected,
  kNonPeerRejected,
  kUnreachable,
  kTimedOut,
  kNoResources,   // this process lacks resources for the attempt
  kConfirmed,     // passive side: connection complete
  kAcceptFailed,  // passive side: the requester has gone
  kDrained,       // the graceful disconnect has completed
  kPeerDisconnected,
  kBroken,
};
inline constexpr int kEndpointInputs = 26;

enum class Verdict : uint8_t {
  kInvalid,   // a call: INVALID_STATE; the wire or the timer: impossible, or too late
  kNoEffect,  // success, nothing happens
  kGo,
};

// What the transition posts on the connect dispatcher.
enum class EndpointEvent : uint8_t {
  kNone,
  kEstablished,
  kPeerRejected,
  kNonPeerRejected,
  kAcceptCompletionError,
  kDisconnected,
  kBroken,
  kTimedOut,
  kUnreachable,
  kNoResources,
};

struct Transition {
  Verdict verdict = Verdict::kInvalid;
  EndpointState next = EndpointState::kUnconnected;
  bool flush = false;  // everything posted completes as flushed
  EndpointEvent event = EndpointEvent::kNone;
};

// Total: defined for every state and input.
constexpr Transition Next(EndpointState state, EndpointInput input);

// How many events are still to come in this state: the outcome of an attempt and the end of what
// was connected.
constexpr uint32_t EventsToCome(EndpointState state) {
  switch (state) {
    case EndpointState::kActivePending:
    case EndpointState::kCompletionPending:
      return 2;
    case EndpointState::kConnected:
    case EndpointState::kDisconnectPending:
      return 1;
    default:
      return 0;
  }
}

// The state forbids the call.
inline constexpr Error InvalidState(EndpointState state) {
  return Error(Code::kInvalidState, static_cast<uint8_t>(state));
}

const char* EndpointStateName(EndpointState state);
const char* EndpointInputName(EndpointInput input);

}  // namespace viaduct::core

#include "dat/core/endpoint_table.h"

#endif  // VIADUCT_DAT_CORE_ENDPOINT_STATE_H_
