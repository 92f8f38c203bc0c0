// Endpoint: DAT's EP, the VI of VIPL.
//
// Its state moves by endpoint_state.h's table alone, under one lock; posting reads the state
// without it. Connection attempts are run by ConnectAttempt (connect_attempt.h).
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
// Called on the executor or inside the call that causes it, with no lock held.
class EndpointObserver {
 public:
  virtual void OnDisconnected(bool broken) = 0;     // the peer's doing
  virtual void OnDropped() = 0;                     // no receive for a message: it was dropped
  virtual void OnRefusedWrite() = 0;                // a write of the peer met a protection error
  virtual void OnRefusedRead() = 0;                 // so did a read
  virtual void OnDamage(verbs::Damage damage) = 0;  // before OnDisconnected

 protected:
  ~EndpointObserver() = default;
};

struct EndpointAttributes {
  // As they are, but no more than such a device has.
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
  // Of a send by PostSend; a longer one is kLengthError. 0: the device's.
  uint32_t max_message_bytes = 0;
  verbs::NoReceive no_receive = verbs::NoReceive::kHold;
  CompletionMode receive_mode = CompletionMode::kDefault;
  CompletionMode request_mode = CompletionMode::kDefault;
  uint32_t remote_access = verbs::kRemoteRead | verbs::kRemoteWrite | verbs::kRemoteAtomic;
  // A failed attempt to connect leads to Disconnected with everything flushed (DAT), or back to
  // Unconnected with the receives still posted (VIPL).
  bool keep_receives_on_failure = false;
  // Only with keep_receives_on_failure: a positive "unreachable" still leads to Disconnected
  // ([MAN] VipConnectRequest: reliable levels go to Error, receives are flushed).
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
  // For how long a request that nobody was there for is repeated, if the deadline is not before.
  verbs::Nanos grace = 0;
  // VIPL: header with the two discriminators.
  const ConnectionHeader* header = nullptr;
  // VIPL, peer to peer, instead of grace and header: `target` is where it is dialled. Until the
  // deadline it waits for a request of the other side, or for the other side to listen.
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
    Ref<SharedReceiveQueue> shared_receives;  // does not change; then PostReceive is not for it
    CompletionObserver* completions = nullptr;
    EndpointObserver* observer = nullptr;
    Ref<Object> observers_owner;  // lives until neither can be called any more; may be null
    Handle subject = nullptr;     // of its events; null: its own handle
  };
  static Error Create(InterfaceAdapter& adapter, const Parts& parts,
                      const EndpointAttributes& attributes, Ref<Endpoint>* out);
  // By the table: kInvalidState in Reserved, Passive, Tentative; disconnects otherwise. The
  // handle is dead; no event of this endpoint is made after it returned.
  Error Free();
  void Destroy() override;

  // ---- data path: no lock of another endpoint, no system call, no allocation
  // `bytes`: of all its segments.
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
  // Its completion names `window`. Takes a lock, and memory for its number.
  Error PostBind(const verbs::BindRequest& request, Handle window, verbs::Key* key);
  bool has_shared_receives() const { return has_shared_receives_; }
  // VIPL: a send on an endpoint that is not connected completes as flushed instead of failing.
  Error PostSendAnyState(const verbs::SendRequest& request) {
    return Post([&](verbs::QueuePair& pair) { return pair.PostSend(request); });
  }

  // ---- connections
  Error Connect(const ConnectParameters& parameters);
  // As `other` connected, following its redirections: same address, name and flags.
  Error DuplicateConnect(Endpoint& other, verbs::Deadline deadline,
                         absl::Span<const uint8_t> private_data, verbs::Nanos grace = 0);
  Error Disconnect(verbs::DisconnectMode mode);
  // Unconnected only: everything posted completes as flushed, the state stays (VipDisconnect of an
  // idle VI). Of one that was freed nothing is posted.
  Error FlushPosted();
  Error Reset();  // Disconnected -> Unconnected; no-op in Unconnected
  // kInvalidHandle once it was freed.
  Error Modify(const Parts* parts, const EndpointAttributes* attributes);
  // SetWatermarks needs no memory from here on.
  void MakeWatch();
  // receive_watch.h: for ReceivesHeld, from now on. Above `soft` kAsyncHighWatermark is posted,
  // once; above `hard` (null: stays) the connection breaks. ReceiveWatch::kNoLimit: none.
  void SetWatermarks(uint32_t soft, std::optional<uint32_t> hard);

  Counts<EndpointCount>& counts() { return owner_.counts; }

  // ---- what it shows
  // Inside an EpochGuard. Its connection has ended: the executor is about to flush everything and
  // to move the state, if it has not yet.
  bool Ended() const;
  EndpointState state() const { return state_.load(std::memory_order_acquire); }
  // The same when nobody is moving it: what the last move flushes has been flushed.
  EndpointState SettledState() const;
  InterfaceAdapter& adapter() const { return *adapter_; }
  Parts parts() const;
  EndpointAttributes attributes() const;
  bool SendIdle() const;
  // Receives that are posted and have not completed; as the device has it for a shared queue.
  uint32_t open_receives() const;
  // The same, behind a look at what has come.
  uint32_t HarvestOpenReceives();
  // Unspecified unless in a connection or an attempt, or with a request that has come for it.
  verbs::Address remote_address() const;
  // The same, for a face that shows a pointer; null instead of unspecified. Points into the
  // endpoint, and what is there changes with the next attempt, accept or reset.
  const sockaddr* remote_sockaddr() const;
  // Active side: the name asked for; passive side: the peer's port. 0 if that is no qualifier.
  uint64_t remote_qualifier() const;
  uint16_t local_port() const;
  // VIPL: what the other side told of itself; `any` if it is DAT.
  EndpointProfile peer_profile() const;
  // Why an attempt peer to peer ended as kPeerRejected; kNone: by the word of a consumer.
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

  // DAT_PSP_PROVIDER_FLAG: an endpoint without parts, for a request that has arrived.
  static Error CreateTentative(InterfaceAdapter& adapter, Ref<Endpoint>* out);
  // Apply, for the passive side's objects.
  Error Move(EndpointInput input);
  // `request` has come for it, where it was reserved or made for that: it shows who asks.
  void TakeRequest(const ConnectionRequest& request);
  // That request has ended, and not by an accept.
  void DropRequest();
  // It is given back: as if it had not come, the reserved endpoint goes on waiting.
  void ReturnRequest();

  // kInvalidState where the table has no such row.
  Error Check(EndpointInput input) const {
    const EndpointState now = state();
    return Next(now, input).verdict == Verdict::kInvalid ? InvalidState(now) : Ok();
  }
  void ForgetRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Moves the state by the table, with its effects; what Check says where it may not.
  Error Apply(EndpointInput input) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Moves it, and tells nothing: the events that were to come do not.
  void Abandon(EndpointState next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `kept`: as EventDispatcher::Post has it.
  void PostEvent(EndpointEvent event, uint32_t kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void Count(EndpointInput input);
  ImmediateAbility immediate_ability() const;
  // What goes in front of an accept's private data.
  std::vector<uint8_t> HeaderOfAccept(const EndpointProfile& profile) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `listening`: of an attempt peer to peer; taken over if it succeeds.
  Error StartAttempt(const ConnectParameters& parameters,
                     std::unique_ptr<PeerListening>* listening = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // A request that belongs to the attempt `id`, on the executor under the manager's lock. True: it
  // is decided. `ended` gets an attempt that this ends, which must not be destroyed under the
  // locks.
  bool OfferPeer(uint64_t id, Arrival* arrival, std::unique_ptr<ConnectAttempt>* ended);
  uint32_t ReceivesHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void StartWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckWatermarks();  // on the executor
  void OnAttemptTimer(uint64_t serial, AttemptTimer due);
  // Opens the accepting side of a connection; undone by a failure of `accept`.
  Error BeginAccept(EndpointInput input, ConnectionRequest& request,
                    absl::Span<const uint8_t> answer, verbs::IncomingConnection& incoming);
  // Without a zone none. `old` gets the one that was there; kInvalidState unless that was idle.
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
    // Of a new one. kInvalidHandle: one of them has ended.
    Error Begin(const Parts& parts);
    Parts Shown() const;
  };
  // What others have taken the place of. Its end waits for posts and for calls of the device under
  // way, which may want lock_: it comes when that is free. Until then the parts are in use, so that
  // nobody frees what the pair refers to.
  struct Replaced {
    PartsInUse parts;
    Modes modes;
    std::unique_ptr<verbs::QueuePair> pair;
    Replaced() = default;
    ~Replaced();
    // For an endpoint that goes on: what was posted until the end comes flushed, and nothing that
    // the device has is lost.
    void FlushPosted();
  };
  // It has these from now on, or none of them if it fails.
  Error AdoptParts(const Parts& parts, const EndpointAttributes& attributes, Replaced* replaced)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void GiveUpParts(Replaced* last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `post` gives the request to the device; it is asked twice where that may help.
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
  // What nobody dequeues has left the queues; false: nothing goes that way.
  bool EmptyDiscarded();
  Error FromPost(verbs::PostResult result) const;

  const Ref<InterfaceAdapter> adapter_;
  CompletionOwner owner_;
  BindTable binds_;
  verbs::Mutex bind_lock_;  // before the device's: binds get their numbers in posting order
  const bool has_shared_receives_;
  std::atomic<EndpointState> state_{EndpointState::kUnconnected};
  // The data path's view of pair_; null without a protection zone.
  std::atomic<verbs::QueuePair*> post_pair_{nullptr};
  std::atomic<DiscardQueue*> post_discard_{nullptr};  // likewise, of discard_
  std::atomic<uint32_t> max_message_bytes_{0};  // of attributes_, or the device's: the data path's
  std::atomic<uint32_t> most_sends_{0};         // max_sends ever: the device's queues do not shrink
  mutable verbs::Mutex lock_;
  PartsInUse parts_ ABSL_GUARDED_BY(lock_);
  Modes modes_ ABSL_GUARDED_BY(lock_);  // what parts_ were counted with
  EndpointAttributes attributes_ ABSL_GUARDED_BY(lock_);
  EndpointProfile profile_ ABSL_GUARDED_BY(lock_);
  EndpointProfile peer_profile_ ABSL_GUARDED_BY(lock_);
  PeerMismatch peer_mismatch_ ABSL_GUARDED_BY(lock_) = PeerMismatch::kNone;
  // While ActivePending. Its end may close a port: it is destroyed outside the lock.
  std::unique_ptr<ConnectAttempt> attempt_ ABSL_GUARDED_BY(lock_);
  ConnectTarget target_ ABSL_GUARDED_BY(lock_);  // where the connection really ended, or who asks
  uint16_t asked_port_ ABSL_GUARDED_BY(lock_) = 0;  // of the request that it is for
  uint64_t serial_ ABSL_GUARDED_BY(lock_) = 0;      // of attempts, so that late timers are known
  uint64_t ends_ ABSL_GUARDED_BY(lock_) = 0;        // how often it became Disconnected
  std::vector<uint8_t> private_data_ ABSL_GUARDED_BY(lock_);    // the peer's, shown in events
  std::unique_ptr<ReceiveWatch> watch_ ABSL_GUARDED_BY(lock_);  // once there were watermarks
  // Takes the completions of a stream that has no dispatcher.
  std::unique_ptr<DiscardQueue> discard_ ABSL_GUARDED_BY(lock_);
  std::unique_ptr<verbs::QueuePair> pair_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_ENDPOINT_H_
