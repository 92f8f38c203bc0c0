// Endpoint: DAT's EP, the VI of VIPL.
//
// Its state changes only by the table of endpoint_state.h, under one lock; posting reads the state
// without the lock. ConnectAttempt (connect_attempt.h) runs the attempts to connect.
//
// Threads: every call from any thread; device events come on the executor.
#ifndef VIADUCT_DAT_CORE_ENDPOINT_H_
#define VIADUCT_DAT_CORE_ENDPOINT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "dat/core/connection_header.h"
#include "dat/core/counts.h"
#include "dat/core/endpoint_state.h"
#include "dat/core/error.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/object.h"
#include "dat/core/peer_match.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_name.h"
#include "dat/core/shared_receive_queue.h"
#include "dat/core/use.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

struct Arrival;
enum class AttemptTimer : uint8_t;
class ConnectAttempt;
class ConnectionManager;
class ConnectionRequest;
class DiscardQueue;
class InterfaceAdapter;
class PeerListening;
class ReceiveWatch;
class ServicePoint;

// Events of an endpoint that are not completions, for a face that wants more than DAT's events.
// Called on the executor or inside the call that causes the event, with no lock held.
class EndpointObserver {
 public:
  virtual void OnDisconnected(bool broken) = 0;     // not by a call of this side
  virtual void OnDropped() = 0;                     // a message found no receive and was dropped
  virtual void OnRefusedWrite() = 0;                // a write of the peer met a protection error
  virtual void OnRefusedRead() = 0;                 // a read of the peer met a protection error
  virtual void OnDamage(verbs::Damage damage) = 0;  // before OnDisconnected

 protected:
  ~EndpointObserver() = default;
};

struct EndpointAttributes {
  // The defaults below, but no more than such a device has.
  static EndpointAttributes DefaultOn(const verbs::DeviceAttributes& device) {
    EndpointAttributes on;
    on.max_sends = std::min(on.max_sends, device.max_requests_per_queue);
    on.max_receives = std::min(on.max_receives, device.max_requests_per_queue);
    on.max_send_segments = std::min(on.max_send_segments, device.max_segments);
    on.max_receive_segments = std::min(on.max_receive_segments, device.max_segments);
    return on;
  }

  uint32_t max_sends = 256;
  uint32_t max_receives = 256;
  uint32_t max_send_segments = 16;
  uint32_t max_receive_segments = 16;
  uint32_t max_reads_in = 0;  // 0: the device's
  uint32_t max_reads_out = 0;
  // Limit for a send by PostSend; a longer one is kLengthError. 0: the device's.
  uint32_t max_message_bytes = 0;
  verbs::NoReceive no_receive = verbs::NoReceive::kHold;
  CompletionMode receive_mode = CompletionMode::kDefault;
  CompletionMode request_mode = CompletionMode::kDefault;
  uint32_t remote_access = verbs::kRemoteRead | verbs::kRemoteWrite | verbs::kRemoteAtomic;
  // A failed attempt to connect leads to Disconnected with everything flushed (DAT), or back to
  // Unconnected with the receives still posted (VIPL).
  bool keep_receives_on_failure = false;
  // Only with keep_receives_on_failure: if the network reports that the peer is unreachable, the
  // endpoint still goes to Disconnected ([MAN] VipConnectRequest: reliable levels go to Error,
  // receives are flushed).
  bool flush_on_unreachable = false;
};

struct ConnectTarget {
  verbs::Address address;
  ServiceName name;
};

struct ConnectParameters {
  ConnectTarget target;
  verbs::Deadline deadline = verbs::Deadline::Infinite();
  absl::Span<const uint8_t> private_data;
  // How long a request that found nobody is repeated, unless the deadline is earlier.
  verbs::Nanos grace = 0;
  // VIPL: header with the two discriminators.
  const ConnectionHeader* header = nullptr;
  // VIPL, peer to peer, instead of grace and header: the attempt dials `target`. Until the deadline
  // it waits for a request of the peer, or for the peer to listen.
  const PeerRequest* peer = nullptr;
};

class Endpoint final : public Object, private verbs::ConnectionSink {
 public:
  static constexpr ObjectType kType = ObjectType::kEndpoint;

  struct Parts {
    Ref<ProtectionZone> zone;  // each may be null
    Ref<EventDispatcher> receive;
    Ref<EventDispatcher> request;
    Ref<EventDispatcher> connect;
    Ref<SharedReceiveQueue> shared_receives;  // never changes; if set, PostReceive must not be used
    CompletionObserver* completions = nullptr;
    EndpointObserver* observer = nullptr;
    Ref<Object> observers_owner;  // lives until neither can be called any more; may be null
    Handle subject = nullptr;     // of its events; null: the endpoint's own handle
  };
  static Error Create(InterfaceAdapter& adapter, const Parts& parts,
                      const EndpointAttributes& attributes, Ref<Endpoint>* out);
  // By the table: kInvalidState in Reserved, Passive and Tentative; disconnects otherwise. Then the
  // handle is dead, and no event of this endpoint is made after Free has returned.
  Error Free();
  void Destroy() override;

  // ---- data path: no lock of another endpoint, no system call, no allocation
  // `bytes`: the total length of its segments.
  Error PostSend(const verbs::SendRequest& request, uint64_t bytes) {
    if (Error error = Check(EndpointInput::kPostRequest); !error.ok()) [[unlikely]]
      return error;
    if (bytes > max_message_bytes_.load(std::memory_order_relaxed) &&
        (request.opcode == verbs::Opcode::kSend ||
         request.opcode == verbs::Opcode::kSendInvalidate)) [[unlikely]] {
      return Code::kLengthError;
    }
    return PostSendAnyState(request);
  }
  // In every state.
  Error PostReceive(const verbs::ReceiveRequest& request) {
    return Post([&](verbs::QueuePair& pair) { return pair.PostReceive(request); });
  }
  Error PostAtomic(const verbs::AtomicRequest& request);
  // The completion names `window`. Takes a lock, and memory for the bind's number.
  Error PostBind(const verbs::BindRequest& request, Handle window, verbs::Key* key);
  bool has_shared_receives() const { return has_shared_receives_; }
  // VIPL: a send on an endpoint that is not connected completes as flushed instead of failing.
  Error PostSendAnyState(const verbs::SendRequest& request) {
    return Post([&](verbs::QueuePair& pair) { return pair.PostSend(request); });
  }

  // ---- connections
  Error Connect(const ConnectParameters& parameters);
  // Connects to where `other` is connected, after redirections: same address and name.
  Error DuplicateConnect(Endpoint& other, verbs::Deadline deadline,
                         absl::Span<const uint8_t> private_data, verbs::Nanos grace);
  Error Disconnect(verbs::DisconnectMode mode);
  // Unconnected only: everything posted completes as flushed, the state stays (VipDisconnect of an
  // idle VI). A freed endpoint has nothing posted: success.
  Error FlushPosted();
  Error Reset();  // Disconnected -> Unconnected; no-op in Unconnected
  // kInvalidHandle once it was freed.
  Error Modify(const Parts* parts, const EndpointAttributes* attributes);
  // After this SetWatermarks needs no memory.
  void MakeWatch();
  // Sets the limits for ReceivesHeld (receive_watch.h) from now on. Above `soft`,
  // kAsyncHighWatermark is posted, once; above `hard` (null: unchanged) the connection breaks.
  // ReceiveWatch::kNoLimit: none.
  void SetWatermarks(uint32_t soft, std::optional<uint32_t> hard);

  Counts<EndpointCount>& counts() { return owner_.counts; }

  // ---- what it shows
  // To be called inside an EpochGuard. True: the connection has ended, and unless that has happened
  // already, the executor is about to flush everything and to change the state.
  bool Ended() const;
  EndpointState state() const { return state_.load(std::memory_order_acquire); }
  // The state while nobody is changing it: what the last change flushes has been flushed.
  EndpointState SettledState() const;
  InterfaceAdapter& adapter() const { return *adapter_; }
  Parts parts() const;
  EndpointAttributes attributes() const;
  bool SendIdle() const;
  // Receives that are posted and have not completed; with a shared queue, what the device reports.
  uint32_t open_receives() const;
  // The same, after harvesting the receive dispatcher.
  uint32_t HarvestOpenReceives();
  // Unspecified unless there is a connection, an attempt, or a request that has come for the
  // endpoint.
  verbs::Address remote_address() const;
  // The same, for a face that shows a pointer; null instead of unspecified. Points into the
  // endpoint; the address there changes with the next attempt, accept or reset.
  const sockaddr* remote_sockaddr() const;
  // Active side: the requested name; passive side: the peer's port. 0 if that is no qualifier.
  uint64_t remote_qualifier() const;
  uint16_t local_port() const;
  // VIPL: the profile that the peer has sent; `any` if the peer is DAT.
  EndpointProfile peer_profile() const;
  // Why a peer-to-peer attempt ended as kPeerRejected; kNone: a consumer rejected it.
  PeerMismatch peer_mismatch() const;
  // The profile sent with connect and accept.
  void set_profile(const EndpointProfile& profile);
  EndpointProfile profile() const;

 private:
  friend class ConnectAttempt;
  friend class ConnectionManager;
  friend class ConnectionRequest;
  friend class ReceiveWatch;
  friend class ServicePoint;

  Endpoint(InterfaceAdapter& adapter, const EndpointAttributes& attributes, bool shared_receives);
  ~Endpoint() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it

  // ConnectionSink.
  void OnConnected(verbs::QueuePair& pair, absl::Span<const uint8_t> private_data) override;
  void OnConnectFailed(verbs::QueuePair& pair, verbs::ConnectOutcome outcome,
                       absl::Span<const uint8_t> private_data) override;
  void OnDisconnected(verbs::QueuePair& pair, verbs::DisconnectCause cause) override;
  void OnDropped(verbs::QueuePair& pair) override;
  void OnRefusedWrite(verbs::QueuePair& pair) override;
  void OnRefusedRead(verbs::QueuePair& pair) override;
  void OnDamage(verbs::QueuePair& pair, verbs::Damage damage) override;

  // DAT_PSP_PROVIDER_FLAG: makes an endpoint without parts for a request that has arrived.
  static Error CreateTentative(InterfaceAdapter& adapter, Ref<Endpoint>* out);
  // Apply, for the passive side's objects.
  Error Move(EndpointInput input);
  // `request` has come for this endpoint, which was reserved or made for it and from now on shows
  // the requester's address.
  void TakeRequest(const ConnectionRequest& request);
  // That request has ended without an accept.
  void DropRequest();
  // That request was given back: the reserved endpoint goes on waiting as if it had not come.
  void ReturnRequest();

  // kInvalidState where the table does not allow `input`.
  Error Check(EndpointInput input) const {
    const EndpointState now = state();
    return Next(now, input).verdict == Verdict::kInvalid ? InvalidState(now) : Ok();
  }
  void ForgetRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Changes the state by the table, with all effects; returns what Check does if it may not.
  Error Apply(EndpointInput input) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Changes the state without an event, and gives up the room for events that were to come.
  void Abandon(EndpointState next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `kept`: as in EventDispatcher::Post.
  void PostEvent(EndpointEvent event, uint32_t kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void Count(EndpointInput input);
  ImmediateAbility immediate_ability() const;
  // The header in front of an accept's private data.
  std::vector<uint8_t> HeaderOfAccept(const EndpointProfile& profile) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `listening`: for a peer-to-peer attempt; taken over on success.
  Error StartAttempt(const ConnectParameters& parameters,
                     std::unique_ptr<PeerListening>* listening = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Offers a request that belongs to the attempt `id`, on the executor under the manager's lock.
  // True: the request is decided. `ended` gets the attempt if this ends it, since it must not be
  // destroyed under the locks.
  bool OfferPeer(uint64_t id, Arrival* arrival, std::unique_ptr<ConnectAttempt>* ended);
  uint32_t ReceivesHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void StartWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckWatermarks();  // on the executor
  void OnAttemptTimer(uint64_t serial, AttemptTimer due);
  // Accepts `incoming` on this endpoint; a failure undoes the change of state.
  Error BeginAccept(EndpointInput input, ConnectionRequest& request,
                    absl::Span<const uint8_t> answer, verbs::IncomingConnection& incoming);
  // Makes a new queue pair, or none without a zone. `old` gets the previous one; kInvalidState
  // unless that had nothing posted.
  Error ReplacePair(const Parts& parts, const EndpointAttributes& attributes,
                    std::unique_ptr<verbs::QueuePair>* old) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Error RefitPair(const Parts& parts, const EndpointAttributes& attributes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  verbs::QueuePairOptions PairOptions(const Parts& parts, const EndpointAttributes& attributes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  struct Modes {
    CompletionMode receive = CompletionMode::kDefault;
    CompletionMode request = CompletionMode::kDefault;
  };
  // Parts in use, which their consumer cannot free.
  struct PartsInUse {
    Use<ProtectionZone> zone;
    Use<EventDispatcher> receive;
    Use<EventDispatcher> request;
    Use<EventDispatcher> connect;
    Use<SharedReceiveQueue> shared_receives;
    CompletionObserver* completions = nullptr;
    EndpointObserver* observer = nullptr;
    Ref<Object> observers_owner;
    Handle subject = nullptr;
    // To be called on a new object. kInvalidHandle: one of the parts has ended.
    Error Begin(const Parts& parts);
    Parts Shown() const;
  };
  // Parts and queue pair that others have replaced. The destructor waits for posts and device calls
  // under way, which may take lock_, so it must run without lock_. Until then the parts count as in
  // use, so that nobody frees what the pair refers to.
  struct Replaced {
    PartsInUse parts;
    Modes modes;
    std::unique_ptr<verbs::QueuePair> pair;
    Replaced() = default;
    ~Replaced();
    // For an endpoint that goes on: what is still posted completes as flushed, and no completion
    // that the device has is lost.
    void FlushPosted();
  };
  // Makes these the endpoint's parts and attributes; a failure leaves the old ones.
  Error AdoptParts(const Parts& parts, const EndpointAttributes& attributes, Replaced* replaced)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void GiveUpParts(Replaced* last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `post` gives the request to the device. It is called again if the queue was full and emptying
  // the discard queue may have made room.
  template <typename ToDevice>
  Error Post(const ToDevice& post) {
    verbs::QueuePair* const pair = post_pair_.load(std::memory_order_acquire);
    if (pair == nullptr) [[unlikely]]
      return InvalidState(StateDetail::kEndpointZone);
    verbs::PostResult result = post(*pair);
    if (result == verbs::PostResult::kOk) [[likely]]
      return Ok();
    if (result == verbs::PostResult::kQueueFull && EmptyDiscarded()) result = post(*pair);
    return FromPost(result);
  }
  // Removes the completions that nobody dequeues; false: there is no discard queue.
  bool EmptyDiscarded();
  Error FromPost(verbs::PostResult result) const;

  const Ref<InterfaceAdapter> adapter_;
  CompletionOwner owner_;
  BindTable binds_;
  verbs::Mutex bind_lock_;  // before the device's lock: numbers binds in posting order
  const bool has_shared_receives_;
  std::atomic<EndpointState> state_{EndpointState::kUnconnected};
  // The data path's view of pair_; null without a protection zone.
  std::atomic<verbs::QueuePair*> post_pair_{nullptr};
  std::atomic<DiscardQueue*> post_discard_{nullptr};  // likewise, of discard_
  std::atomic<uint32_t> max_message_bytes_{0};  // for the data path: attributes_' or the device's
  std::atomic<uint32_t> most_sends_{0};  // the largest max_sends so far: device queues never shrink
  mutable verbs::Mutex lock_;
  PartsInUse parts_ ABSL_GUARDED_BY(lock_);
  Modes modes_ ABSL_GUARDED_BY(lock_);  // what parts_ were counted with
  EndpointAttributes attributes_ ABSL_GUARDED_BY(lock_);
  EndpointProfile profile_ ABSL_GUARDED_BY(lock_);
  EndpointProfile peer_profile_ ABSL_GUARDED_BY(lock_);
  PeerMismatch peer_mismatch_ ABSL_GUARDED_BY(lock_) = PeerMismatch::kNone;
  // While ActivePending. Destroyed outside the lock, since that may close a port.
  std::unique_ptr<ConnectAttempt> attempt_ ABSL_GUARDED_BY(lock_);
  ConnectTarget target_ ABSL_GUARDED_BY(lock_);  // where the connection really ended, or who asks
  uint16_t asked_port_ ABSL_GUARDED_BY(lock_) = 0;  // direct port that the pending request names
  uint64_t serial_ ABSL_GUARDED_BY(lock_) = 0;      // of the last attempt: identifies late timers
  uint64_t ends_ ABSL_GUARDED_BY(lock_) = 0;        // how often it became Disconnected
  std::vector<uint8_t> private_data_ ABSL_GUARDED_BY(lock_);    // the peer's, shown in events
  std::unique_ptr<ReceiveWatch> watch_ ABSL_GUARDED_BY(lock_);  // once there were watermarks
  // Takes the completions of a stream that has no dispatcher.
  std::unique_ptr<DiscardQueue> discard_ ABSL_GUARDED_BY(lock_);
  std::unique_ptr<verbs::QueuePair> pair_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_ENDPOINT_H_
