// What an event dispatcher hands out.
#ifndef VIADUCT_DAT_CORE_EVENT_H_
#define VIADUCT_DAT_CORE_EVENT_H_

#include <cstdint>

#include "dat/core/object.h"
#include "verbs/device.h"

namespace viaduct::core {

// Whether this is the opcode of a receive's completion; all others are those of requests.
inline bool IsReceive(verbs::Opcode opcode) { return opcode >= verbs::Opcode::kReceive; }

enum class EventType : uint8_t {
  kCompletion,
  kConnectionRequest,
  kEstablished,
  kPeerRejected,
  kNonPeerRejected,
  kAcceptCompletionError,
  kDisconnected,
  kBroken,
  kTimedOut,
  kUnreachable,
  kNoResources,  // this process lacks resources for the attempt
  kSoftware,
  kAsyncEndpointBroken,
  kAsyncHighWatermark,
  kAsyncOverflow,
  kAsyncSharedReceivesLow,
  kAsyncAdapterFailed,
};

// Whether the event concerns a connection or a request for one.
inline bool IsOfConnections(EventType type) {
  return type >= EventType::kConnectionRequest && type <= EventType::kNoResources;
}

struct Event {
  EventType type = EventType::kCompletion;
  // Completions and connection events: the endpoint, or the window of a bind. kConnectionRequest:
  // the connection request. Asynchronous events: the object that they are about.
  Handle subject = nullptr;
  // kConnectionRequest: the service point; null for a reserved one, which is gone by then.
  Handle service_point = nullptr;
  union {
    uint64_t cookie = 0;  // kCompletion: the request's id
    void* pointer;        // kSoftware
    uint64_t qualifier;   // kConnectionRequest: the name it came to, as a qualifier
  };
  // kCompletion.
  verbs::Opcode opcode = verbs::Opcode::kSend;
  verbs::Status status = verbs::Status::kSuccess;
  bool has_immediate = false;
  bool solicited = false;
  bool notifies = true;  // wakes waiters and notifiers (CompletionMode says what does)
  uint32_t length = 0;
  uint32_t immediate = 0;
  // kEstablished, kPeerRejected: the peer's private data, owned by the endpoint until it is
  // reset or freed.
  uint32_t private_data_size = 0;
  const void* private_data = nullptr;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_EVENT_H_
