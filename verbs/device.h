// The device contract: what the engine needs from an RDMA device, real or soft.
//
// Modelled on rdma-core: context, protection domain, memory region, memory window, completion
// queue, queue pair, shared receive queue, listener, incoming connection. This header is the
// specification; README.md holds the table that maps each call to libibverbs/librdmacm and to the
// soft wires.
//
// Threads. Every call may come from any thread. Nothing blocks on the network or on the peer;
// CompletionQueue::Wait alone sleeps. Sinks are called on the context's executor, one at a time,
// with no lock of the device held, so any call is legal inside them, destruction of the object
// they belong to included. After a destructor returned its sink is not called again; a destructor
// called off the executor waits for a sink call in progress.
//
// Ownership. The caller owns what it creates and destroys in reverse: queue pairs before
// completion queues, shared receive queues and domains, everything before its context. Regions and
// windows may be destroyed at any time.
//
// Failure. A request that fails (any status but kSuccess and kFlushed) breaks its connection:
// OnDisconnected(kBroken) comes and everything behind it is flushed. With NoReceive::kDrop it fails
// alone. A write with immediate data that breaks off with its connection fails its receive, if
// there is one, with kTransport, where the device can tell; else that is flushed.
//
// Ordering. Each work queue completes in posting order. What one side sends arrives in order; a
// write is placed before a later send is received. Reads and atomics keep their order among
// themselves and may be overtaken by other later requests unless those carry kFence. A bind is
// done before anything posted after it is sent. All completions of work that succeeded are pollable
// before OnDisconnected is called; the flushed rest follows, in order.
#ifndef VIADUCT_VERBS_DEVICE_H_
#define VIADUCT_VERBS_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/base/executor.h"
#include "verbs/base/pass_lock.h"

namespace viaduct::verbs {

// ---------------------------------------------------------------------------------- memory

// Names a region, locally and on the wire (iWARP's steering tag). 1..0x7fffffff, unguessable:
// VIPL hands it out as VIP_MEM_HANDLE, DAT as LMR and RMR context.
using Key = uint32_t;

enum Access : uint32_t {  // bit set
  kLocalRead = 1,
  kLocalWrite = 2,
  kRemoteRead = 4,
  kRemoteWrite = 8,
  kRemoteAtomic = 16,
};

// Where the addresses of a region or window begin: at its own in memory, or at 0.
enum class AddressBase : uint8_t { kVirtual, kZero };

// A local buffer. Laid out as VIPL's data segment, so that face passes its own.
struct Segment {
  uint64_t address;
  Key key;
  uint32_t length;  // 0: address and key mean nothing
};
static_assert(sizeof(Segment) == 16);

class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;
};

// Destruction deregisters: after it nothing is read or written through the key any more, nor
// through a window that was bound to it, by anybody. Requests that still name it complete with
// kLocalProtection, remote ones with kRemoteAccess.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual Key key() const = 0;
  // Changes domain and rights; requests already posted meet the new ones. InvalidArgument, as of
  // Context::Register, and ResourceExhausted: it is as before.
  virtual absl::Status Modify(ProtectionDomain& domain, uint32_t access) = 0;
};

enum class WindowScope : uint8_t {
  kDomain,     // its key is good on every queue pair of the domain; the peer cannot invalidate it
  kQueuePair,  // only on the queue pair where it was bound, whose peer may invalidate it
};

// A part of a region under a key of its own: bound by QueuePair::PostBind, and by nothing else.
// Each bind gives a fresh key, and the one before it ends. Destruction unbinds: after it nothing
// is read or written through the key any more.
class MemoryWindow {
 public:
  virtual ~MemoryWindow() = default;
};

// ------------------------------------------------------------------------------ work requests

enum class Opcode : uint8_t {
  kSend,
  kWrite,
  kRead,
  kCompareAndSwap,  // PostAtomic
  kFetchAndAdd,
  kSendInvalidate,  // a send that also ends the peer's window `remote_key`; completes as kSend
  kBind,            // PostBind
  // Completions only.
  kReceive,
  kReceiveWrite,       // a receive consumed by the peer's write with immediate data
  kReceiveInvalidate,  // the message ended a window here: `immediate` is its key
};

enum RequestFlag : uint16_t {  // bit set
  kFence = 1,                  // starts after all earlier reads of this queue pair have completed
  kSolicited = 2,              // shows in the peer's completion
  kImmediate = 4,  // `immediate` travels along; on a write it consumes a receive of the peer
  kConfirm = 8,    // completes only when the data is in place at the peer, and with its verdict
  kSuppress = 16,  // no completion unless it fails
  // The segments of a read are named by remote keys, of windows or regions, and need
  // kRemoteWrite instead of kLocalWrite.
  kRemoteSink = 32,
  kQuiet = 256,  // shows in its own completion
};

enum class Status : uint8_t {
  kSuccess,
  kFlushed,           // the queue pair left Connected, or never was, before this was done
  kLocalLength,       // the message is longer than the receive; or a request above the limits
  kLocalProtection,   // a local key, range, right or domain is wrong
  kRemoteAccess,      // the peer's region refused
  kRemoteOperation,   // the peer's receive failed (too short, or local error there), or it
                      // cannot do such a request (atomic at an odd address)
  kReceiverNotReady,  // NoReceive::kBreak at the peer
  kTransport,         // connection lost under this request
};

// Gives requests their ids in the order in which they enter a queue, so that a caller that posts
// from several threads needs no lock of its own for that.
class IdSource {
 public:
  // Under the queue's lock: short, no call into the device. The request is posted, unless the
  // answer is false: then it is kQueueFull.
  virtual bool TakeId(uint64_t* id) = 0;

 protected:
  ~IdSource() = default;
};

struct SendRequest {
  uint64_t id = 0;
  IdSource* ids = nullptr;        // asked instead, if there is one
  Opcode opcode = Opcode::kSend;  // kSend, kWrite, kRead, kSendInvalidate (no immediate data)
  uint16_t flags = 0;
  uint32_t immediate = 0;
  // Copied before PostSend returns; the memory it points to belongs to the device until completion.
  absl::Span<const Segment> segments;
  uint64_t remote_address = 0;  // kWrite, kRead
  Key remote_key = 0;           // kWrite, kRead, kSendInvalidate
  // Other than kSuccess: nothing is sent, and in its turn the request completes with this.
  Status verdict = Status::kSuccess;
};

// 64 bits at `remote_address`, a multiple of 8, change as one: towards other queue pairs and the
// processor too. Counts as a read for order, fences and limits.
//   kCompareAndSwap  if it is `compare_add`, it becomes `swap`
//   kFetchAndAdd     `compare_add` is added
// The value that was there before goes to `result`, eight bytes in native order.
struct AtomicRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::kFetchAndAdd;
  uint16_t flags = 0;  // kFence, kSuppress
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  Segment result = {};
  uint64_t remote_address = 0;
  Key remote_key = 0;
  Status verdict = Status::kSuccess;  // as in SendRequest
};

// Binds `window` to [address, address + length) of a region, whose domain and the window's are the
// queue pair's. Needs kLocalRead of the region for kRemoteRead, kLocalWrite for kRemoteWrite, both
// for kRemoteAtomic. Otherwise it fails in its turn with kLocalProtection.
struct BindRequest {
  uint64_t id = 0;
  uint16_t flags = 0;  // kFence, kSuppress
  MemoryWindow* window = nullptr;
  Key region = 0;
  uint64_t address = 0;                      // as the region counts
  uint64_t length = 0;                       // 0: unbinds
  uint32_t access = 0;                       // kRemote...
  AddressBase base = AddressBase::kVirtual;  // of the addresses that the peer names
  Status verdict = Status::kSuccess;         // as in SendRequest
};

struct ReceiveRequest {
  uint64_t id = 0;
  IdSource* ids = nullptr;  // as in SendRequest; not of a shared queue
  absl::Span<const Segment> segments;
  bool quiet = false;  // shows in its completion
  // Other than kSuccess: it has no segments, and fails with this when a message comes to it, of no
  // bytes too, of which nothing is placed; to the peer that is kRemoteOperation. Not of a shared
  // queue.
  Status verdict = Status::kSuccess;
};

// What a device does for a SendRequest or ReceiveRequest as it enters the queue: its id, from its
// source if it has one. False: kQueueFull.
template <typename Request>
bool TakeIdOf(const Request& request, uint64_t* id) {
  *id = request.id;
  return request.ids == nullptr || request.ids->TakeId(id);
}

enum class PostResult : uint8_t {
  kOk,
  kQueueFull,  // as many requests as the queue was made for are posted and not polled
  kTooManySegments,
  kNoKey,  // a bind, and all keys of the device are in use
};

struct Completion {
  uint64_t id;
  void* context;       // of the queue pair
  uint32_t length;     // bytes of the message: sent, received, written or read
  uint32_t immediate;  // if has_immediate; kReceiveInvalidate: the key that has ended
  Opcode opcode;
  Status status;
  bool has_immediate;  // it came along, or went along with a write or send; or was to, with a write
  bool solicited;
  bool quiet;  // the request was posted so; the device makes nothing of it
};

// ---------------------------------------------------------------------------- completion queue

class CompletionQueue;

class CompletionSink {
 public:
  // The device made progress by itself and completions wait that nobody polls. Comes within
  // about 2 ms of the completion while nobody polls, at once when the queue was asleep; a sink
  // that polls everything there is called again only for new ones.
  virtual void OnCompletions(CompletionQueue& queue) = 0;

 protected:
  ~CompletionSink() = default;
};

enum class WaitResult : uint8_t {
  kReady,  // poll: something may be there
  kWoken,  // Wake was called
  kTimedOut,
  kInterrupted,  // a signal handler ran in this thread
};

// Holds any number of completions: it never overflows.
class CompletionQueue {
 public:
  explicit CompletionQueue(PassLock& lock) : lock_(lock) {}
  virtual ~CompletionQueue() = default;

  // Makes progress for every queue pair that completes here and takes up to `n` completions, the
  // oldest of each queue first; fewer: there are no more that were there before the call. No
  // system call, no allocation. Any number of threads.
  int Poll(Completion* out, int n) {
    const PassLockHolder holder(&lock());
    return PollLocked(out, n);
  }
  // The same for a caller that holds lock(): its own state beside the queue, which changes with
  // what it takes, is guarded by it, too. The device holds it whenever it looks at the queue by
  // itself, and takes under it none of the caller's. Nothing else of the device may be called by
  // its holder.
  virtual int PollLocked(Completion* out, int n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock()) = 0;
  PassLock& lock() const ABSL_LOCK_RETURNED(lock_) { return lock_; }

  // Counts the calls of Wake. Whoever waits reads it before the Poll that finds nothing, so that
  // a Wake in between is not lost.
  virtual uint32_t wakes() const = 0;

  // Spins for about one wake-up, then sleeps. Several threads may wait; each is woken by
  // anything. kWoken as soon as wakes() is not `wakes`.
  virtual WaitResult Wait(Deadline deadline, uint32_t wakes) = 0;

  // Makes every waiter return kWoken, and whoever has read wakes() before and comes to wait.
  virtual void Wake() = 0;

  // `sink`, always the same and the one of the creation if there was one, is called once at once
  // for completions that are there or for the next to come, although somebody has polled shortly
  // before; from then on as a sink is.
  virtual void Arm(CompletionSink& sink) = 0;

 private:
  PassLock& lock_;
};

// ----------------------------------------------------------------------- shared receive queue

class SharedReceiveQueue;

class SharedReceiveSink {
 public:
  // Fewer receives are posted than the limit that was set. Once for each SetLimit.
  virtual void OnLowWatermark(SharedReceiveQueue& queue) = 0;

 protected:
  ~SharedReceiveSink() = default;
};

struct SharedReceiveOptions {
  ProtectionDomain* domain = nullptr;  // that of the queue pairs that use it
  SharedReceiveSink* sink = nullptr;   // may be null
  uint32_t max_receives = 0;
  uint32_t max_segments = 1;
};

// Receives for many queue pairs: a message takes the oldest when it begins to arrive, and
// completes where its queue pair's receives complete. Receives that no message has taken stay
// when a queue pair disconnects.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;

  // No system call, no allocation. kQueueFull: `max_receives` are posted and not taken.
  virtual PostResult PostReceive(const ReceiveRequest& request) = 0;
  // FailedPrecondition: more are posted and not taken; ResourceExhausted.
  virtual absl::Status Resize(uint32_t max_receives) = 0;
  // Arms OnLowWatermark for the next time that fewer than `limit` are posted and not taken, which
  // may be now; 0 disarms.
  virtual void SetLimit(uint32_t limit) = 0;

  // Posted and not taken.
  virtual uint32_t available() const = 0;
  // Posted, taken ones included until their completion was polled.
  virtual uint32_t outstanding() const = 0;
};

// --------------------------------------------------------------------------------- queue pair

// What becomes of a message that finds no receive.
enum class NoReceive : uint8_t {
  // It waits (DAT), behind the peer's disconnect too, if the device can: until it is taken, or
  // nothing was for a second, or a request of this side turns out to be unanswered.
  kHold,
  kBreak,  // the connection breaks (VIPL's reliable levels)
  // It is dropped and reported (VIPL's unreliable level). One that is too long for its receive
  // completes it with kLocalLength, and the connection stays. Where an end is an RDMA device a send
  // above kMaxDropBytes fails with kLocalLength.
  kDrop,
};
// An RDMA device receives into memory of its own first: which receive it is for is not known
// before.
inline constexpr uint32_t kMaxDropBytes = 65536;

enum class ConnectOutcome : uint8_t {
  kRefused,      // an answer, but not a consumer's: Refuse, backlog full, bad handshake
  kNobody,       // the host answers, and nobody listens at that port
  kRejected,     // IncomingConnection::Reject, with its private data
  kUnreachable,  // the network says that there is no way
  kNoResources,  // this process has no memory or descriptor for it, and no wire without need of it
  kGone,         // passive side: the peer gave up before the connection was complete
};

enum class DisconnectCause : uint8_t {
  kLocal,   // the end of Disconnect(kGraceful)
  kPeer,    // the peer disconnected, or its process ended in order
  kBroken,  // transport failure, an access error, death of the peer
};

// How the immediate data of sends travels between two ends that agreed on it.
enum class ImmediateForm : uint8_t {
  kNone,    // it does not
  kNative,  // as the device has it
  // In a frame in front of every message (verbs/FORMAT.md), for a device without immediate data.
  // Then a write with kImmediate is a write and a message. Not with a shared receive queue of a
  // device that has nothing else (not DeviceAttributes::immediate_data).
  kFramed,
};

// Bytes of an end that its peer may read and that mean nothing. Where a read of no bytes is not
// answered as it should be (siw), the peer's requests with kConfirm are followed by a read of these
// instead.
struct ConfirmationWord {
  static constexpr uint32_t kBytes = 8;
  uint64_t address = 0;
  Key key = 0;
};

// What a connection's end has spoilt of what the peer was sending.
enum class Damage : uint8_t {
  kNone,
  kWriteCutOff,   // a write without immediate data has been placed in part: the rest never comes
  kWriteCorrupt,  // the same, and what came next was corrupt
  kCorrupt,       // what came was corrupt by its checksum, and so nobody knows what it was
};

class QueuePair;

// private_data is valid during the call only.
class ConnectionSink {
 public:
  // Connected; sends may be posted. No receive completes before this returned.
  virtual void OnConnected(QueuePair& pair, absl::Span<const uint8_t> private_data) = 0;
  // Back in Idle, receives still posted. Nothing further comes from this attempt.
  virtual void OnConnectFailed(QueuePair& pair, ConnectOutcome outcome,
                               absl::Span<const uint8_t> private_data) = 0;
  // Once per connection, and not begun after Disconnect(kAbrupt). Everything is flushed.
  virtual void OnDisconnected(QueuePair& pair, DisconnectCause cause) = 0;
  // NoReceive::kDrop dropped a message of the peer.
  virtual void OnDropped(QueuePair& pair) = 0;
  // A write of the peer without immediate data was refused here (the connection breaks, except
  // with NoReceive::kDrop).
  virtual void OnRefusedWrite(QueuePair& pair) = 0;
  // A read of the peer was refused here; the connection breaks. Most sinks hear enough of that.
  virtual void OnRefusedRead(QueuePair& /*pair*/) {}
  // Just before OnDisconnected, for whoever wants to know more.
  virtual void OnDamage(QueuePair& /*pair*/, Damage /*damage*/) {}

 protected:
  ~ConnectionSink() = default;
};

struct QueuePairOptions {
  ProtectionDomain* domain = nullptr;
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;
  // Its receives are taken from there; then max_receives and max_receive_segments mean nothing and
  // PostReceive is not called. Does not change.
  SharedReceiveQueue* shared_receives = nullptr;
  ConnectionSink* sink = nullptr;
  void* context = nullptr;  // shown in completions
  uint32_t max_sends = 0;   // posted and not yet polled
  uint32_t max_receives = 0;
  uint32_t max_send_segments = 1;
  uint32_t max_receive_segments = 1;
  uint32_t max_reads_in = 0;  // 0: the device's default
  uint32_t max_reads_out = 0;
  NoReceive no_receive = NoReceive::kHold;
  // What the peer may do at all.
  uint32_t remote_access = kRemoteRead | kRemoteWrite | kRemoteAtomic;
};

struct ConnectOptions {
  Address address;
  uint16_t port = 0;
  absl::Span<const uint8_t> private_data;  // copied
  // The answer may turn out to be that of an end that frames: receives are ready for both until
  // OnConnected says which. Devices with immediate data of their own are ready anyway.
  bool may_frame = false;
};

enum class DisconnectMode : uint8_t {
  // Posted requests complete first; then the peer is told and OnDisconnected(kLocal) comes.
  kGraceful,
  // Everything outstanding is flushed before the call returns; no sink call begins after it. What
  // was completed before still arrives at the peer. Ends an attempt to connect as well.
  kAbrupt,
};

// Idle -> (Connect | Accept) Connecting -> Connected -> Error -> (Reset) Idle.
// A failed attempt leads back to Idle. Destruction disconnects abruptly.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  // Never block, no system call and no allocation for up to 4 KiB.
  // In any state but Connected the request completes with kFlushed.
  virtual PostResult PostSend(const SendRequest& request) = 0;
  virtual PostResult PostAtomic(const AtomicRequest& request) = 0;
  // `*key` becomes the window's key from the completion on, 0 for an unbind. The key before it ends
  // between the post and the completion. Where the queue pair is not connected now, or drains,
  // nothing changes, `*key` neither, and the request is flushed. A bind that is flushed later
  // leaves the window unbound.
  virtual PostResult PostBind(const BindRequest& request, Key* key) = 0;
  // In Error the request completes with kFlushed; otherwise it is queued.
  virtual PostResult PostReceive(const ReceiveRequest& request) = 0;

  // Idle only (FailedPrecondition otherwise): domain, rights, no_receive and limits; work queues
  // do not shrink.
  virtual absl::Status Modify(const QueuePairOptions& options) = 0;

  // Idle only. The outcome comes to the sink; there is no time-out of its own except that of
  // the handshake once the peer has answered. ResourceExhausted, and nothing has happened: what
  // would be kNoResources is known at once.
  virtual absl::Status Connect(const ConnectOptions& options) = 0;
  // True once anything was heard from the host of the current or last attempt: tells TIMED_OUT
  // from UNREACHABLE.
  virtual bool Heard() const = 0;
  // Of the connection, or of the attempt that goes on; the peer sees it in its request.
  virtual uint16_t local_port() const = 0;
  // Both ends are Viaduct and agreed on `form` in their private data. Called inside OnConnected or
  // before Accept, and holds for that connection alone. Without it, or with kNone, a send arrives
  // without the value, and a write with kImmediate goes as the standards have it (iWARP: RFC 7306,
  // which older peers refuse) or, where the device has none, fails with kRemoteOperation.
  virtual void EnableImmediate(ImmediateForm form) = 0;
  // What the peer should be told in the private data; null where no bytes will do.
  virtual std::optional<ConfirmationWord> confirmation_word() { return std::nullopt; }
  // The peer's, null if it has told none. Called where EnableImmediate is, and holds for the
  // connection. Means nothing to a device that does not confirm by reads.
  virtual void ConfirmBy(const std::optional<ConfirmationWord>& /*word*/) {}

  // No effect in Idle and Error.
  virtual void Disconnect(DisconnectMode mode) = 0;
  // Idle or Error -> Error: everything posted is flushed.
  virtual void Flush() = 0;
  // Error -> Idle. Flushed completions stay pollable.
  virtual void Reset() = 0;

  // True from the moment at which a connection has ended other than by Disconnect, before anything
  // of it is flushed, until Reset.
  virtual bool Ended() const = 0;

  // No send is posted that has not completed.
  virtual bool SendIdle() const = 0;
  // Receives that are posted and have not completed; of a shared queue's those that messages of
  // this pair have taken so far.
  virtual uint32_t open_receives() const = 0;
};

// ---------------------------------------------------------------------------------- listening

inline constexpr size_t kMaxNote = 64;
// A device carries one request through so many, which is more than there are processes in a line
// that pass it on. Beyond that it may refuse it: else one could go round for ever.
inline constexpr int kMostHandOffs = 32;

// A request that has arrived. Destroying it undecided refuses it.
class IncomingConnection {
 public:
  virtual ~IncomingConnection() = default;
  virtual const Address& peer_address() const = 0;
  virtual uint16_t peer_port() const = 0;
  virtual absl::Span<const uint8_t> private_data() const = 0;  // valid as long as *this

  // `pair` must be Idle (FailedPrecondition otherwise, and nothing has happened; nor has anything
  // when this throws std::bad_alloc). ResourceExhausted: the device cannot have one more, and the
  // peer sees kRefused. Otherwise the outcome comes to the sink of `pair`: OnConnected with no
  // private data, or OnConnectFailed(kGone).
  virtual absl::Status Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) = 0;
  // The peer sees kRejected with the data.
  virtual void Reject(absl::Span<const uint8_t> private_data) = 0;
  // The peer sees kRefused.
  virtual void Refuse() = 0;

  // Moves the request to the listener at `port` in another process of this host and user (or in
  // this one), which sees `note`, of at most kMaxNote bytes, with it. NotFound: nobody there, or
  // nobody who takes it; Unavailable: no answer until `deadline`, or none any more, or too many
  // wait there; ResourceExhausted. Then it is undecided still. Blocks until the other process has
  // answered: not on the executor. The next process may hand it on, kMostHandOffs times in all.
  virtual absl::Status HandOff(uint16_t port, absl::Span<const uint8_t> note,
                               Deadline deadline) = 0;
  // What HandOff gave along; empty for a request that comes straight from its requester.
  virtual absl::Span<const uint8_t> note() const = 0;
};

class ListenerSink {
 public:
  virtual void OnRequest(std::unique_ptr<IncomingConnection> request) = 0;
  // Another process wants to hand over a request with this note: would it be taken? Then it comes
  // soon, or not at all.
  virtual bool TakesHandOff(absl::Span<const uint8_t>) { return false; }

 protected:
  ~ListenerSink() = default;
};

// Listens until destroyed. Requests already handed over stay valid.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual uint16_t port() const = 0;
};

// ------------------------------------------------------------------------------------ context

// Which device serves an address is left to the library.
inline constexpr char kAnyDevice[] = "auto";

struct DeviceAttributes {
  std::string device;     // "soft", "sim", or the RDMA device as ibv_devices names it
  std::string transport;  // its wires ("shm, iwarp"); of an RDMA device what network it speaks
  std::string reason;     // why this device was chosen, for the log line at open
  uint32_t max_queue_pairs = 0;
  uint32_t max_requests_per_queue = 0;
  uint32_t max_segments = 0;
  uint32_t max_reads_in = 0;  // per queue pair
  uint32_t max_reads_out = 0;
  uint32_t max_regions = 0;
  uint64_t max_region_bytes = 0;
  uint32_t max_message_bytes = 0;
  uint32_t max_private_data = 0;  // of a request and of an answer
  // Of shared receive queues, whose number is 0 where there are none.
  uint32_t max_shared_queues = 0;
  uint32_t max_shared_receives = 0;
  uint32_t max_shared_segments = 0;
  bool zero_based = true;      // AddressBase::kZero; false: at best for memory that begins a page
  bool pair_windows = true;    // false: WindowScope::kQueuePair is as kDomain
  bool immediate_data = true;  // of writes, and of sends where both ends agree on it; false: frames
  bool atomics = true;
  // For how long a listener that nobody needs had better stay, since the next one at its port may
  // be needed soon, and requests are lost while the device changes from one to the other.
  Nanos listener_rest = 0;
};

// Hears that a device has failed.
class FailureSink {
 public:
  // It is broken, or was taken out: nothing can be made on it any more and nobody is served, while
  // connections end as their own sinks hear. Executor.
  virtual void OnDeviceFailed() = 0;

 protected:
  ~FailureSink() = default;
};

// What comes of the question whether somebody would take a request. A later one goes before an
// earlier one where several were asked.
enum class TakeAnswer : uint8_t {
  kNo,      // nobody of this host and user is there, or who is says so
  kSilent,  // somebody is, or was, and has not answered: a process may be stopped
  kYes,
};

// An opened device, bound to one address.
class Context {
 public:
  virtual ~Context() = default;
  virtual const DeviceAttributes& attributes() const = 0;
  virtual const Address& address() const = 0;
  virtual Executor& executor() = 0;
  // From now on until it is removed, when no call is under way any more. False: the device has
  // failed already. The soft device is this process itself, and does not fail.
  virtual bool AddFailureSink(FailureSink*) { return true; }
  virtual void RemoveFailureSink(FailureSink*) {}
  // How long CompletionQueue::Wait polls before it sleeps, for whoever waits on several queues.
  virtual Nanos spin_time() const { return 0; }

  // A wildcard domain matches every region, a region in it every queue pair (VIPL's NULL tag).
  virtual absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateDomain(bool wildcard) = 0;

  // Any address and length but 0; the same bytes may be registered several times. InvalidArgument:
  // some of it is not mapped or behind the end of its file, or the process itself may not do there
  // what `access` lets others do.
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(ProtectionDomain& domain,
                                                                 void* address, size_t length,
                                                                 uint32_t access,
                                                                 AddressBase base) = 0;
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(ProtectionDomain& domain, void* address,
                                                         size_t length, uint32_t access) {
    return Register(domain, address, length, access, AddressBase::kVirtual);
  }
  virtual absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateWindow(ProtectionDomain& domain,
                                                                     WindowScope scope) = 0;
  virtual absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(
      const SharedReceiveOptions& options) = 0;
  // `sink` may be null.
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(
      CompletionSink* sink) = 0;
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(
      const QueuePairOptions& options) = 0;

  // Port 0 takes a free one. AlreadyExists: taken (which is logged); PermissionDenied;
  // InvalidArgument: the host does not have the context's address any more; ResourceExhausted.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(uint16_t port, ListenerSink* sink) = 0;

  // Does a process of this host and user, perhaps this one, listen at `port`? A guess, good for the
  // moment: others may listen where it cannot look.
  virtual bool IsServed(uint16_t port) = 0;

  // Would the listener at `port`, of whatever process of this host and user, take a request with
  // this note (TakesHandOff)? kSilent too without an answer until `deadline`. It is asked in any
  // case, unless too many wait there, and has heard the note when it gets to it. Blocks; not on the
  // executor.
  virtual TakeAnswer WouldTake(uint16_t /*port*/, absl::Span<const uint8_t> /*note*/,
                               Deadline /*deadline*/) {
    return TakeAnswer::kNo;
  }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_DEVICE_H_
