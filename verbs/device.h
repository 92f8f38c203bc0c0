// The device contract: what the engine needs from an RDMA device, real or soft.
//
// Modelled on rdma-core: context, protection domain, memory region, memory window, completion
// queue, queue pair, shared receive queue, listener, incoming connection. This header is the
// specification; README.md holds the table that maps each call to libibverbs/librdmacm and to the
// soft wires.
//
// Threads. Every call may come from any thread, unless it says otherwise. No call blocks on the
// network or on the peer. Only CompletionQueue::Wait sleeps, and HandOff and WouldTake, which
// another process of this host answers, and over RoCE Accept, if the kernel has lost the neighbour:
// then the executor may wait for it, too.
// Sinks are called on the context's executor, one at a time and with no lock of the device held, so
// any call that is legal on the executor is legal inside them, even the destruction of the object
// that they belong to. After a destructor has returned its sink is not called again; a destructor
// called off the executor waits for a sink call in progress.
//
// Ownership. The caller owns what it creates and destroys it in reverse order: queue pairs before
// completion queues, shared receive queues and domains, and everything before its context. Regions
// and windows may be destroyed at any time.
//
// Failure. A request that fails (any status but kSuccess and kFlushed) breaks its connection:
// OnDisconnected(kBroken) is called and everything else that has not completed is flushed. With
// NoReceive::kDrop only the request itself fails. If the connection ends in the middle of a write
// with immediate data, the receive for that write, if there is one, fails with kTransport where the
// device can tell, and is flushed otherwise.
//
// Ordering. Each work queue completes in posting order. What one side sends arrives in order; a
// write is placed before a later send is received. Reads and atomics keep their order among
// themselves, but later requests of other kinds may overtake them unless those carry kFence. A bind
// is done before anything posted after it is sent. All completions of work that succeeded are
// pollable before OnDisconnected is called; the flushed rest follows, in order.
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

// Where the addresses of a region or window begin: at its address in memory, or at 0.
enum class AddressBase : uint8_t { kVirtual, kZero };

// A local buffer. Laid out like VIPL's data segment, so that the VIPL face passes its own.
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

// Destruction deregisters the region: after it nobody reads or writes through its key, or through a
// window that was bound to it. Local requests that still name it complete with kLocalProtection,
// the peer's with kRemoteAccess.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual Key key() const = 0;
  // Changes domain and rights; requests already posted are checked against the new ones. After
  // InvalidArgument (as from Context::Register) or ResourceExhausted the region is unchanged.
  virtual absl::Status Modify(ProtectionDomain& domain, uint32_t access) = 0;
};

enum class WindowScope : uint8_t {
  kDomain,     // its key is good on every queue pair of the domain; the peer cannot invalidate it
  kQueuePair,  // only on the queue pair where it was bound, whose peer may invalidate it
};

// A part of a region under a key of its own, bound only by QueuePair::PostBind. Each bind gives the
// window a fresh key and ends the previous one. Destruction unbinds the window: after it nothing is
// read or written through its key.
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
  kImmediate = 4,  // `immediate` is sent along; a write with it consumes a receive of the peer
  kConfirm = 8,    // completes only when the data is in place at the peer, with the peer's verdict
  kSuppress = 16,  // no completion unless it fails
  // The segments of a read are named by remote keys, of windows or regions, and need
  // kRemoteWrite instead of kLocalWrite.
  kRemoteSink = 32,
  kQuiet = 256,  // shows in its own completion
};

enum class Status : uint8_t {
  kSuccess,
  kFlushed,           // the queue pair left Connected, or never was, before the request was done
  kLocalLength,       // the message is longer than the receive; or a request above the limits
  kLocalProtection,   // a local key, range, right or domain is wrong
  kRemoteAccess,      // the peer's region refused
  kRemoteOperation,   // the peer's receive failed (too short, or local error there), or the peer
                      // cannot do such a request (atomic at an unaligned address)
  kReceiverNotReady,  // NoReceive::kBreak at the peer
  kTransport,         // connection lost under this request
};

// Gives requests their ids in the order in which they enter a queue, so that a caller that posts
// from several threads needs no lock of its own for that.
class IdSource {
 public:
  // Called with the queue's lock held: must be short and make no call into the device. True: the
  // request is posted; false: the post returns kQueueFull.
  virtual bool TakeId(uint64_t* id) = 0;

 protected:
  ~IdSource() = default;
};

struct SendRequest {
  uint64_t id = 0;
  IdSource* ids = nullptr;        // if not null, gives the id instead
  Opcode opcode = Opcode::kSend;  // kSend, kWrite, kRead, kSendInvalidate (no immediate data)
  uint16_t flags = 0;
  uint32_t immediate = 0;
  // Copied before PostSend returns; the buffers it names belong to the device until completion.
  absl::Span<const Segment> segments;
  uint64_t remote_address = 0;  // kWrite, kRead
  Key remote_key = 0;           // kWrite, kRead, kSendInvalidate
  // If not kSuccess, nothing is sent, and the request completes in its turn with this status.
  Status verdict = Status::kSuccess;
};

// Changes the 64 bits at `remote_address`, a multiple of 8, atomically, also with respect to other
// queue pairs and the processor. Counts as a read for order, fences and limits.
//   kCompareAndSwap  if the value is `compare_add`, it becomes `swap`
//   kFetchAndAdd     `compare_add` is added to the value
// The previous value goes to `result`, eight bytes in native order.
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

// Binds `window` to [address, address + length) of a region; window and region must be of the queue
// pair's domain. The region needs kLocalRead for kRemoteRead, kLocalWrite for kRemoteWrite, both
// for kRemoteAtomic. Otherwise the bind fails in its turn with kLocalProtection.
struct BindRequest {
  uint64_t id = 0;
  uint16_t flags = 0;  // kFence, kSuppress
  MemoryWindow* window = nullptr;
  Key region = 0;
  uint64_t address = 0;                      // in the region's AddressBase
  uint64_t length = 0;                       // 0: unbinds
  uint32_t access = 0;                       // kRemote...
  AddressBase base = AddressBase::kVirtual;  // of the addresses that the peer names
  Status verdict = Status::kSuccess;         // as in SendRequest
};

struct ReceiveRequest {
  uint64_t id = 0;
  IdSource* ids = nullptr;  // as in SendRequest; not for a shared queue
  absl::Span<const Segment> segments;
  bool quiet = false;  // shows in its completion
  // If not kSuccess, the receive has no segments and fails with this status when a message arrives
  // for it, even one of no bytes. Nothing of the message is placed, and the peer sees
  // kRemoteOperation. Not for a shared queue.
  Status verdict = Status::kSuccess;
};

// Sets `*id` to the id of a SendRequest or ReceiveRequest, from its source if it has one; a device
// calls it as the request enters the queue. False: the post returns kQueueFull.
template <typename Request>
bool TakeIdOf(const Request& request, uint64_t* id) {
  *id = request.id;
  return request.ids == nullptr || request.ids->TakeId(id);
}

enum class PostResult : uint8_t {
  kOk,
  kQueueFull,  // as many requests as the queue was made for are posted and not yet polled
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
  bool has_immediate;  // received, or sent with a send or write; also if a write failed to send it
  bool solicited;
  bool quiet;  // as the request was posted; means nothing to the device
};

// ---------------------------------------------------------------------------- completion queue

class CompletionQueue;

class CompletionSink {
 public:
  // The device made progress by itself, and completions are waiting that nobody polls. Called
  // within about 2 ms of the completion while nobody polls, at once if the queue was asleep. A sink
  // that polls everything that is there is called again only for new completions.
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
  // oldest of each queue first. Fewer than `n`: none is left that was there before the call. No
  // system call, no allocation. Any number of threads.
  int Poll(Completion* out, int n) {
    const PassLockHolder holder(&lock());
    return PollLocked(out, n);
  }
  // The same for a caller that holds lock(), which may also guard state of the caller's own that
  // changes with what it polls. The device holds this lock whenever it polls the queue by itself,
  // and takes none of the caller's locks while it does. Whoever holds the lock may call nothing
  // else of the device.
  virtual int PollLocked(Completion* out, int n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock()) = 0;
  PassLock& lock() const ABSL_LOCK_RETURNED(lock_) { return lock_; }

  // The number of calls of Wake so far. A thread that is going to wait reads it before the Poll
  // that finds nothing, so that a Wake in between is not lost.
  virtual uint32_t wakes() const = 0;

  // Spins for about as long as a wake-up takes, then sleeps. Several threads may wait; any news
  // wakes all of them. kWoken as soon as wakes() is not `wakes`.
  virtual WaitResult Wait(Deadline deadline, uint32_t wakes) = 0;

  // Makes every waiter return kWoken, also those that have read wakes() before and wait only now.
  virtual void Wake() = 0;

  // Calls `sink` once, without delay, for completions that are there or else for the next to come,
  // even if somebody has polled shortly before; after that it is called as any CompletionSink is.
  // `sink` is always the same one, and that given at creation if there was one.
  virtual void Arm(CompletionSink& sink) = 0;

 private:
  PassLock& lock_;
};

// ----------------------------------------------------------------------- shared receive queue

class SharedReceiveQueue;

class SharedReceiveSink {
 public:
  // Fewer receives are posted and not taken than the limit. Called once for each SetLimit.
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

// Receives for many queue pairs: a message takes the oldest one when it begins to arrive, and that
// receive completes where the queue pair's receives complete. Receives that no message has taken
// stay posted when a queue pair disconnects.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;

  // No system call, no allocation. kQueueFull: `max_receives` are posted and not taken.
  virtual PostResult PostReceive(const ReceiveRequest& request) = 0;
  // FailedPrecondition: more than `max_receives` are posted and not taken; ResourceExhausted.
  virtual absl::Status Resize(uint32_t max_receives) = 0;
  // Arms OnLowWatermark for the next time that fewer than `limit` are posted and not taken, which
  // may be now; 0 disarms.
  virtual void SetLimit(uint32_t limit) = 0;

  // Receives that are posted and not taken.
  virtual uint32_t available() const = 0;
  // Receives that are posted, including those taken until their completion has been polled.
  virtual uint32_t outstanding() const = 0;
};

// --------------------------------------------------------------------------------- queue pair

// What becomes of a message that finds no receive.
enum class NoReceive : uint8_t {
  // It waits for a receive (DAT), even after the peer's disconnect if the device can do that: until
  // it is taken, or nothing has been taken for a second, or a request of this side turns out to be
  // unanswered.
  kHold,
  kBreak,  // the connection breaks (VIPL's reliable levels)
  // It is dropped and reported (VIPL's unreliable level). A message longer than its receive
  // completes the receive with kLocalLength, and the connection stays. If either end is an RDMA
  // device, a send above kMaxDropBytes fails with kLocalLength.
  kDrop,
};
// For kDrop an RDMA device receives into buffers of its own first, since it does not know
// beforehand which receive a message is for.
inline constexpr uint32_t kMaxDropBytes = 65536;

enum class ConnectOutcome : uint8_t {
  kRefused,      // an answer, but not a consumer's: Refuse, backlog full, bad handshake
  kNobody,       // the host answers, and nobody listens at that port
  kRejected,     // IncomingConnection::Reject, with its private data
  kUnreachable,  // the network says that there is no way
  kNoResources,  // this process lacks memory or descriptors, and no wire does without them
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
  kNative,  // in the device's own form
  // In a frame in front of every message (verbs/FORMAT.md), for a device without immediate data.
  // A write with kImmediate is then sent as a write and a message. Not with a shared receive queue
  // of a device that has no other form (no DeviceAttributes::immediate_data).
  kFramed,
};

// Meaningless bytes at one end that its peer may read. Where a read of no bytes is not answered as
// it should be (siw), the peer follows its requests with kConfirm by a read of these bytes instead.
struct ConfirmationWord {
  static constexpr uint32_t kBytes = 8;
  uint64_t address = 0;
  Key key = 0;
};

// What the end of a connection has damaged of the data that the peer was sending.
enum class Damage : uint8_t {
  kNone,
  kWriteCutOff,   // a write without immediate data has been placed in part: the rest never comes
  kWriteCorrupt,  // the same, and what came next was corrupt
  kCorrupt,       // what came failed its checksum, so nobody knows what it was
};

class QueuePair;

// private_data is valid during the call only.
class ConnectionSink {
 public:
  // Connected; sends may be posted. No receive completes before this has returned.
  virtual void OnConnected(QueuePair& pair, absl::Span<const uint8_t> private_data) = 0;
  // Back in Idle, receives still posted. Nothing further comes from this attempt.
  virtual void OnConnectFailed(QueuePair& pair, ConnectOutcome outcome,
                               absl::Span<const uint8_t> private_data) = 0;
  // Once per connection; no call begins after Disconnect(kAbrupt). Everything is flushed.
  virtual void OnDisconnected(QueuePair& pair, DisconnectCause cause) = 0;
  // NoReceive::kDrop dropped a message of the peer.
  virtual void OnDropped(QueuePair& pair) = 0;
  // A write of the peer without immediate data was refused here (the connection breaks, except
  // with NoReceive::kDrop).
  virtual void OnRefusedWrite(QueuePair& pair) = 0;
  // A read of the peer was refused here; the connection breaks, which is all that most sinks need.
  virtual void OnRefusedRead(QueuePair& /*pair*/) {}
  // Called just before OnDisconnected, for sinks that want to know more.
  virtual void OnDamage(QueuePair& /*pair*/, Damage /*damage*/) {}

 protected:
  ~ConnectionSink() = default;
};

struct QueuePairOptions {
  ProtectionDomain* domain = nullptr;
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;
  // If not null, receives are taken from this queue; max_receives and max_receive_segments mean
  // nothing then, and PostReceive is not called. Modify does not change it.
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
  // The peer that answers may turn out to send frames: receives are ready for messages with and
  // without frames until OnConnected decides. Devices with native immediate data always are.
  bool may_frame = false;
};

enum class DisconnectMode : uint8_t {
  // Posted requests complete first; then the peer is notified and OnDisconnected(kLocal) is called.
  kGraceful,
  // Everything outstanding is flushed before the call returns; no sink call begins after it. What
  // was completed before still arrives at the peer. Also ends an attempt to connect.
  kAbrupt,
};

// Idle -> (Connect | Accept) Connecting -> Connected -> Error -> (Reset) Idle.
// A failed attempt leads back to Idle. Destruction disconnects abruptly.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  // The posts never block, and need no system call and no allocation for up to 4 KiB.
  // In any state but Connected the request completes with kFlushed.
  virtual PostResult PostSend(const SendRequest& request) = 0;
  virtual PostResult PostAtomic(const AtomicRequest& request) = 0;
  // Sets `*key` to the key that the window has from the completion on, 0 for an unbind. The
  // previous key ends between the post and the completion. If the queue pair is not connected now,
  // or is draining, nothing changes, not even `*key`, and the request is flushed. A bind that is
  // flushed later leaves the window unbound.
  virtual PostResult PostBind(const BindRequest& request, Key* key) = 0;
  // In Error the request completes with kFlushed; otherwise it is queued.
  virtual PostResult PostReceive(const ReceiveRequest& request) = 0;

  // Idle only (FailedPrecondition otherwise). Changes domain, rights, no_receive and limits; work
  // queues do not shrink.
  virtual absl::Status Modify(const QueuePairOptions& options) = 0;

  // Idle only. The outcome is reported to the sink. There is no time-out except that of the
  // handshake once the peer has answered. ResourceExhausted: a shortage of the kind of kNoResources
  // that is known at once; nothing has happened.
  virtual absl::Status Connect(const ConnectOptions& options) = 0;
  // True once anything was heard from the host of the current or last attempt: distinguishes
  // TIMED_OUT from UNREACHABLE.
  virtual bool Heard() const = 0;
  // The port of the connection or of the attempt in progress; the peer sees it in the request.
  virtual uint16_t local_port() const = 0;
  // Both ends are Viaduct and have agreed on `form` in their private data. Called inside
  // OnConnected or before Accept; holds for that connection only. Without this call, or with kNone,
  // a send arrives without the value. A write with kImmediate is then sent as the standards have it
  // (iWARP: RFC 7306, which older peers refuse) or, on a device without immediate data, fails with
  // kRemoteOperation.
  virtual void EnableImmediate(ImmediateForm form) = 0;
  // What to tell the peer in the private data; null where a read of no bytes is enough.
  virtual std::optional<ConfirmationWord> confirmation_word() { return std::nullopt; }
  // The peer's word, null if it sent none. Called where EnableImmediate is called, and holds for
  // the connection. Means nothing to a device that does not confirm by reads.
  virtual void ConfirmBy(const std::optional<ConfirmationWord>& /*word*/) {}

  // No effect in Idle and Error.
  virtual void Disconnect(DisconnectMode mode) = 0;
  // Idle or Error -> Error: everything posted is flushed.
  virtual void Flush() = 0;
  // Error -> Idle. Flushed completions stay pollable.
  virtual void Reset() = 0;

  // True from the moment a connection ends other than by Disconnect, before any of its requests is
  // flushed, until Reset.
  virtual bool Ended() const = 0;

  // True if every send that was posted has completed.
  virtual bool SendIdle() const = 0;
  // Receives that are posted and have not completed; with a shared queue, those of its receives
  // that messages of this pair have taken so far.
  virtual uint32_t open_receives() const = 0;
};

// ---------------------------------------------------------------------------------- listening

inline constexpr size_t kMaxNote = 64;
// A device hands one request off at least so many times, which is more than there are processes in
// a line that pass it on. Beyond that it may refuse the request, which might go round for ever.
inline constexpr int kMostHandOffs = 32;

// A request that has arrived. Destroying it undecided refuses it.
class IncomingConnection {
 public:
  virtual ~IncomingConnection() = default;
  virtual const Address& peer_address() const = 0;
  virtual uint16_t peer_port() const = 0;
  virtual absl::Span<const uint8_t> private_data() const = 0;  // valid as long as *this

  // `pair` must be Idle, else FailedPrecondition. Nothing has happened then, nor if this throws
  // std::bad_alloc. ResourceExhausted: the device cannot have one more connection, and the peer
  // sees kRefused. Otherwise the outcome is reported to the sink of `pair`: OnConnected with no
  // private data, or OnConnectFailed(kGone).
  virtual absl::Status Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) = 0;
  // The peer sees kRejected with the data.
  virtual void Reject(absl::Span<const uint8_t> private_data) = 0;
  // The peer sees kRefused.
  virtual void Refuse() = 0;

  // Moves the request, with `note` (1 to kMaxNote bytes), to the listener at `port` in another
  // process of this host and user, or in this one. NotFound: nobody listens there, or nobody who
  // takes it, or too many wait there; Unavailable: no answer until `deadline`, or none will come;
  // ResourceExhausted. After a failure the request is still undecided. Blocks until the other
  // process has answered: not on the executor. The next process may hand the request on,
  // kMostHandOffs times in all.
  virtual absl::Status HandOff(uint16_t port, absl::Span<const uint8_t> note,
                               Deadline deadline) = 0;
  // The note that HandOff passed; empty for a request that comes straight from its requester.
  virtual absl::Span<const uint8_t> note() const = 0;
};

class ListenerSink {
 public:
  virtual void OnRequest(std::unique_ptr<IncomingConnection> request) = 0;
  // Another process wants to hand over a request with this note. True: the request would be taken;
  // it then comes soon, or not at all.
  virtual bool TakesHandOff(absl::Span<const uint8_t>) { return false; }

 protected:
  ~ListenerSink() = default;
};

// Listens until destroyed. Requests already given to the sink stay valid.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual uint16_t port() const = 0;
};

// ------------------------------------------------------------------------------------ context

// Leaves it to the library which device serves an address.
inline constexpr char kAnyDevice[] = "auto";

struct DeviceAttributes {
  std::string device;     // "soft", "sim", or the RDMA device as ibv_devices names it
  std::string transport;  // its wires ("shm, iwarp"); for an RDMA device, the network it speaks
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
  // Limits of shared receive queues; max_shared_queues is 0 on a device that has none.
  uint32_t max_shared_queues = 0;
  uint32_t max_shared_receives = 0;
  uint32_t max_shared_segments = 0;
  bool zero_based = true;      // AddressBase::kZero; false: at best for page-aligned memory
  bool pair_windows = true;    // false: WindowScope::kQueuePair behaves like kDomain
  bool immediate_data = true;  // of writes, and of sends where both ends agree on it; false: frames
  bool atomics = true;
  // How long a listener should stay when nobody needs it any more: the next one at its port may be
  // needed soon, and requests are lost while the device changes from one to the other.
  Nanos listener_rest = 0;
};

// Is notified when a device fails.
class FailureSink {
 public:
  // The device is broken or was removed: nothing can be created on it any more and nobody is
  // served; the end of each connection is reported to its own sink. On the executor.
  virtual void OnDeviceFailed() = 0;

 protected:
  ~FailureSink() = default;
};

// The result of Context::WouldTake. Where several were asked, the greatest answer counts.
enum class TakeAnswer : uint8_t {
  kNo,      // no process of this host and user listens there, or the one that does says no, or so
            // many wait there, perhaps for another user, that it cannot be asked
  kSilent,  // a process listens there, or did, and has not answered: it may be stopped
  kYes,
};

// An opened device, bound to one address.
class Context {
 public:
  virtual ~Context() = default;
  virtual const DeviceAttributes& attributes() const = 0;
  virtual const Address& address() const = 0;
  virtual Executor& executor() = 0;
  // The sink is called from now on until it is removed; when RemoveFailureSink returns, no call is
  // in progress. False: the device has failed already. The soft device is this process itself, and
  // does not fail.
  virtual bool AddFailureSink(FailureSink*) { return true; }
  virtual void RemoveFailureSink(FailureSink*) {}
  // How long CompletionQueue::Wait polls before it sleeps, for callers that wait on several queues.
  virtual Nanos spin_time() const { return 0; }

  // A wildcard domain matches every region, and a region in it every queue pair (VIPL's NULL tag).
  virtual absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateDomain(bool wildcard) = 0;

  // Any address and length but 0; the same bytes may be registered several times. InvalidArgument:
  // part of the range is not mapped or lies beyond the end of its file, or the process itself may
  // not do there what `access` lets others do.
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

  // Port 0 takes a free one. AlreadyExists: the port is taken (which is logged); PermissionDenied;
  // InvalidArgument: the host does not have the context's address any more; ResourceExhausted.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(uint16_t port, ListenerSink* sink) = 0;

  // Does a process of this host and user, perhaps this one, listen at `port`? A guess, and good
  // only for the moment: there may be listeners that it cannot see.
  virtual bool IsServed(uint16_t port) = 0;

  // Would the listener at `port`, in whatever process of this host and user, take a request with
  // this note (TakesHandOff)? kSilent also if there is no answer until `deadline`. The listener is
  // asked in any case, unless too many wait there, and sees the note when it gets to the question.
  // Blocks; not on the executor.
  virtual TakeAnswer WouldTake(uint16_t /*port*/, absl::Span<const uint8_t> /*note*/,
                               Deadline /*deadline*/) {
    return TakeAnswer::kNo;
  }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_DEVICE_H_
