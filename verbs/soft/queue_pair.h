// A queue pair without a transport: work queues, states, checks. Wires attach a Link to it.
//
// What a request means is decided here, once, for every wire: which receive a message takes and
// what becomes of one that finds none, where bytes may be placed, which request is emitted next,
// what completes with which status, what is flushed. A wire moves bytes and tells the rest.
//
// Locks, in this order (a thread may skip, never go back):
//   control_               state changes; held during Wire::Connect, Link::Start and what
//                          EnterError asks of the link, never during Link::Disconnect or a sink
//                          call
//   inbound, send queue's  the PassLocks of the completion queues where receives (the home) and
//                          sends complete; one after the other by address, or tried
//   send_lock_             posting and emission
//   receive_lock_          posting of receives
// Sinks run on the executor with none of them.
#ifndef VIADUCT_VERBS_SOFT_QUEUE_PAIR_H_
#define VIADUCT_VERBS_SOFT_QUEUE_PAIR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "verbs/base/anchor.h"
#include "verbs/base/block.h"
#include "verbs/base/lock.h"
#include "verbs/base/pass_lock.h"
#include "verbs/device.h"
#include "verbs/soft/attachment.h"
#include "verbs/soft/completion_queue.h"
#include "verbs/soft/link.h"
#include "verbs/soft/receive_line.h"
#include "verbs/soft/region_table.h"
#include "verbs/soft/work_queue.h"

namespace viaduct::verbs {

class SoftContext;
class SoftSharedReceiveQueue;

// What the pair makes of something inbound.
enum class Inbound : uint8_t {
  kOk,
  kHeld,     // no receive yet: consume nothing, make the same call in a later Poll
  kDropped,  // consume the bytes and forget them
  kBroken,   // the connection is breaking: consume nothing more
};

// What comes with the end of a message.
struct Trailer {
  uint32_t immediate = 0;
  bool has_immediate = false;
  bool cut = false;  // immediate data were to come
  bool solicited = false;
};

class SoftQueuePair final : public QueuePair, public OnBlocks {
 public:
  enum class State : uint8_t { kIdle, kConnecting, kConnected, kError };

  // InvalidArgument: something is missing or above the limits; ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<SoftQueuePair>> Create(SoftContext& context,
                                                               const QueuePairOptions& options);
  ~SoftQueuePair() override;

  // ------------------------------------------------------------------- verbs::QueuePair
  PostResult PostSend(const SendRequest& request) override;
  PostResult PostAtomic(const AtomicRequest& request) override;
  PostResult PostBind(const BindRequest& request, Key* key) override;
  PostResult PostReceive(const ReceiveRequest& request) override;
  absl::Status Modify(const QueuePairOptions& options) override;
  absl::Status Connect(const ConnectOptions& options) override;
  bool Heard() const override { return heard_.load(std::memory_order_relaxed); }
  uint16_t local_port() const override { return local_port_.load(std::memory_order_relaxed); }
  void EnableImmediate(ImmediateForm form) override {
    immediate_form_.store(form, std::memory_order_relaxed);
  }
  void ConfirmBy(const std::optional<ConfirmationWord>& word) override;
  void Disconnect(DisconnectMode mode) override;
  void Flush() override;
  void Reset() override;
  bool Ended() const override;
  bool SendIdle() const override;
  uint32_t open_receives() const override;

  // ======================================================================= for the wire
  // ---- Connecting. On the executor, no lock held; at most one of the outcomes per attempt, which
  // says whose it is: the pair may have disconnected, and be in its next attempt. A wire that lost
  // its pair (Link::Disconnect was called) calls none.

  // IncomingConnection::Accept of the wire: Idle -> Connecting, `link` belongs to this pair until
  // Link::Disconnect. FailedPrecondition otherwise, and nothing has happened. Any thread.
  absl::Status Attach(Link& link);
  // Connecting -> Connected: the sink's OnConnected, then Link::Start. Passive sides call it when
  // the peer is known to have the answer, with no private data. False: the pair is gone or has
  // disconnected meanwhile, and the link may have been destroyed.
  bool Established(const Link& from, absl::Span<const uint8_t> private_data);
  // Connecting -> Idle. True: the pair has let go of the link, which gets no Disconnect. False:
  // the pair disconnected first, and Disconnect is called or being called.
  bool ConnectFailed(const Link& from, ConnectOutcome outcome,
                     absl::Span<const uint8_t> private_data);
  // Nobody here on this wire: the next one of the context is tried, or kNobody. As above.
  bool NotHere(const Link& from) { return TryWires(from, /*again=*/false); }
  // A wire before this one, on which nobody was, has somebody by now: who listens came between the
  // looks at the two. Never again after StartAgain. On the executor.
  bool IsServedNearer();
  // The attempt begins again with the first wire. As above.
  bool StartAgain(const Link& from) { return TryWires(from, /*again=*/true); }
  State state() const { return state_.load(std::memory_order_acquire); }

  bool ReadsOutstanding() const { return reads_out_.load(std::memory_order_relaxed) != 0; }

  // A wire that has found nobody did so for want of memory or descriptors: the attempt's outcome is
  // kNoResources where it would be kNobody, since somebody may wait there.
  void NoteNoResources() { no_resources_.store(true, std::memory_order_relaxed); }
  // A wire has found somebody who has no room for one more request: the attempt's outcome is
  // kRefused where it would be kNobody, and not kNoResources.
  void NoteBacklogFull() { backlog_full_.store(true, std::memory_order_relaxed); }
  void NotePeerHeard() { heard_.store(true, std::memory_order_relaxed); }
  void SetLocalPort(uint16_t port) { local_port_.store(port, std::memory_order_relaxed); }
  // What was agreed with the peer, before Established; 0 forbids reads.
  void SetReadsOut(uint32_t reads) { reads_out_limit_ = reads; }
  uint32_t max_reads_in() const { return max_reads_in_; }
  uint32_t max_reads_out() const { return max_reads_out_; }
  // How the immediate data of sends travels (kNative: iWARP has a way of its own). Settled when the
  // link starts. The pair strips what may not travel, so shm and sim need not ask: both ends of
  // theirs are soft devices, which agree on kNative or kNone.
  ImmediateForm immediate_form() const { return immediate_form_.load(std::memory_order_relaxed); }
  // What a read that confirms asks for; null: no bytes. Settled as the form is.
  std::optional<ConfirmationWord> confirm_by() const;

  // ---- The end. Any thread, under any of the pair's locks; the first call wins and the rest is
  // ignored. From then on NextToEmit gives nothing and Poll is not called; soon, on the executor,
  // the oldest emitted and incomplete request completes with `verdict` (kFlushed: as all others),
  // everything is flushed, Link::Disconnect and the sink (kBroken) are called. `verdict`: what the
  // peer said (kRemoteAccess, kRemoteOperation, kReceiverNotReady), kTransport when the connection
  // was lost, kFlushed otherwise.
  void Fail(Status verdict) { FailWith(DisconnectCause::kBroken, verdict, Status::kTransport); }
  // The peer of `from` has disconnected in order: kPeer. On the executor, no lock held. What it
  // sent before and the program has no receive for holds the end up, until all is taken, or
  // nothing was for a second, or a request of this side waits for its answer.
  void PeerLeft(const Link& from);

  // Before Fail, inside Poll: what came fails its checksum.
  void SetCorrupt() { corrupt_ = true; }

  // Behind kBroken: what the peer is to learn, for a wire that has words for it.
  Status peer_verdict() const {
    SpinLockHolder holder(&fail_lock_);
    return peer_verdict_;
  }

  // ---- Progress. The wire calls this on the executor when something arrived or room appeared;
  // no lock held. Polls the link, pumps, marks and wakes what has to know. True if the link
  // consumed something. A link that is not Connected is not polled.
  bool Attend();
  // Something arrived on a cold link; only marks and wakes. Any thread; the caller makes sure
  // that the pair exists (e.g. by a lock that Link::Disconnect also takes).
  void MarkArrived();

  // ---- Emission, inside Link::Pump (send lock held).

  // The request to emit, or to go on with; null: none, or it must wait (fence, reads), or broken.
  SendEntry* NextToEmit();
  // The memory of an entry that is one segment, and may be read. Null: there is more to it, see
  // Gather.
  const unsigned char* WholeSegment(const SendEntry& entry) const;
  // Its position; stays valid until it is complete.
  uint64_t emit_position() const { return sends_.done.load(std::memory_order_relaxed); }
  // Calls copy(from, at, bytes) for the pieces of [offset, offset + n) of the entry's local
  // memory, `at` counting from 0. False: a check failed, the pair is breaking, leave Pump.
  template <typename Copy>
  bool Gather(const SendEntry& entry, uint32_t offset, uint32_t n, Copy&& copy);
  // The operands of an atomic that NextToEmit gave.
  Operands operands() const { return sends_.operands(emit_position()); }
  // All of it is on its way. kNow: it is complete. kLater: Complete or FinishRead follows; always
  // so for reads and atomics.
  enum class Completes : bool { kNow, kLater };
  void Emitted(Completes when);
  // Inside Pump or Poll, for what was emitted with kLater; in any order.
  void Complete(uint64_t position, Status status);
  // The oldest emitted send or write that is not complete, at `*position` or behind; *position
  // becomes its. Null: none. Inside Poll.
  SendEntry* NextIncomplete(uint64_t* position);
  // Where the next request will be written, if a peer watches that line: PostSend has it fetched
  // while it is still busy with the request. A hint, which may outlive the link.
  void ExpectStoreTo(const void* line) { next_line_.store(line, std::memory_order_relaxed); }

  // ---- Inbound, inside Link::Poll (inbound lock held). After kBroken leave Poll.

  // A send: StartReceive once at its beginning, PlaceReceive for each piece (in order or not),
  // FinishReceive with its length. What is being dropped need not be remembered: the later calls
  // answer kDropped.
  Inbound StartReceive();
  template <typename Copy>  // copy(to, at, bytes), `at` counting from 0
  Inbound PlaceReceive(uint64_t offset, uint32_t n, Copy&& copy);
  Inbound FinishReceive(uint32_t length, const Trailer& trailer);

  // All three of a message that has come whole, with copy(to). False: nothing has happened, there
  // is more to it.
  template <typename Copy>
  bool ReceiveWhole(uint32_t length, bool solicited, Copy&& copy);

  // The message ends the window `key` of this pair, before its receive completes: called between
  // StartReceive and FinishReceive, or at once before StartReceive is called for the first time.
  Inbound Invalidate(Key key);

  // A write: PlaceWrite for each piece, then FinishWrite with the length of all, which may be
  // kHeld if there is immediate data.
  template <typename Copy>
  Inbound PlaceWrite(Key key, uint64_t address, uint32_t n, bool has_immediate, Copy&& copy);
  Inbound FinishWrite(uint32_t length, const Trailer& trailer);
  // Immediate data that come behind their write, which FinishWrite without them has ended,
  // `refused` if with kDropped. May be kHeld.
  Inbound ReceiveWritten(uint32_t length, const Trailer& trailer, bool refused);

  // The peer's read of [address, address + n): ask again for every piece, under the same lock
  // (inbound or send) as the copying. kOk: `*from` is readable as long as the lock is held.
  Inbound CheckRead(Key key, uint64_t address, uint32_t n, const unsigned char** from);
  // What was wrong with a write, read or atomic that has just been refused, for a wire that can say
  // it.
  Refusal WhyRefused(Key key, uint32_t access) const;

  // The peer's atomic: next(old) is what the 64 bits become; `*original` is what they were. Other
  // than kSuccess it is refused, with what the peer is to learn, and the connection is breaking.
  template <typename Next>
  Status UpdateAtomic(Key key, uint64_t address, uint64_t* original, Next&& next);

  // The answer to the oldest read or atomic: null if none is outstanding (the peer lies).
  // entry->offset is the wire's to count.
  SendEntry* OldestRead();
  template <typename Copy>
  Inbound PlaceRead(const SendEntry& entry, uint32_t offset, uint32_t n, Copy&& copy);
  void FinishRead();

  // A message is held and nothing was posted for it since: it is no arrival.
  bool holding() const {
    return held_.load(std::memory_order_relaxed) &&
           receives_.done.load(std::memory_order_relaxed) ==
               receives_.posted.load(std::memory_order_acquire) &&
           (shared_ == nullptr || !SharedReceiveWaits());
  }
  // Something is posted and not emitted, or emitted and not complete: the link waits for room, a
  // confirmation or an answer.
  bool SendsWait() const {
    return SendsUnemitted() || incomplete_.load(std::memory_order_relaxed) != 0;
  }
  bool SendsUnemitted() const {
    return sends_.done.load(std::memory_order_acquire) !=
           sends_.posted.load(std::memory_order_relaxed);
  }

  // ============================================ for completion queues (attachment.queue locked)
  // Progress, then up to `n` completions.
  int Serve(Attachment& attachment, Completion* out, int n);
  // 0: nothing to reap. Else a number that changes when more becomes reapable.
  uint64_t Reapable(const Attachment& attachment);
  bool Arrived() const;
  bool HasWork(const Attachment& attachment) { return Reapable(attachment) != 0 || Arrived(); }
  // After cooling: puts the pair into the ready list of every queue that has something of it.
  void MarkIfHasWork();
  bool hot() const { return hot_.load(std::memory_order_relaxed); }
  void TryHeat(Attachment& attachment);
  // False: the other queue, or a poster, is busy. Sets *fence if a heavy fence is due before
  // Arrived is asked.
  bool TryCool(Attachment& attachment, bool* fence);
  // Out of the shared receive queue, and not reaped.
  uint64_t TakenReceives() const {
    return receives_.posted.load(std::memory_order_relaxed) -
           receives_.reaped.load(std::memory_order_relaxed);
  }
  // Its place among the pairs whose messages wait for that queue's receives.
  ReceiveLine::Waiter& receive_waiter() { return receive_waiter_; }
  static SoftQueuePair& OfWaiter(ReceiveLine::Waiter& waiter) {
    return *static_cast<ReceiveWaiter&>(waiter).pair;
  }
  bool HoldsMessages() const { return no_receive_ == NoReceive::kHold; }
  uint32_t activity() const { return activity_.load(std::memory_order_relaxed); }

 private:
  // kInvalidating: open, and shows invalidated_.
  enum class Message : uint8_t { kNone, kOpen, kInvalidating, kDiscarding };
  // What Serve has to look after.
  enum Attention : uint8_t {  // bit set
    kDraining = 1,            // Disconnect(kGraceful)
    kFullRing = 2,            // a message is held until completions of shared receives are reaped
    kPeerLeft = 4,
  };
  static constexpr uint64_t kNoSend = UINT64_MAX;  // no position
  // In SendEntry::flags, beside RequestFlag: not to be emitted; completes with the status in
  // `cookie` when everything before it has completed.
  static constexpr uint16_t kFailsInOrder = 0x8000;
  // A bind whose poster still waits for the end of the window's key before.
  static constexpr uint16_t kWithdrawing = 0x4000;

  SoftQueuePair(SoftContext& context, const QueuePairOptions& options);
  absl::Status Apply(const QueuePairOptions& options);

  // ---- connecting
  void Begin(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  // What was settled with the peer of the last attempt.
  void ForgetTerms();
  // Tries wires from attempt_wire_ on; false: none is left.
  bool StartAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  bool TryWires(const Link& from, bool again);  // those that are left, or all of them
  // It is that of the attempt under way.
  bool IsAttemptOf(const Link& link) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_) {
    return state_.load() == State::kConnecting && link_.load() == &link;
  }
  void EndAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  // What it is where no wire has found anybody.
  ConnectOutcome OutcomeIfNobody() const {
    if (no_resources_.load()) return ConnectOutcome::kNoResources;
    return backlog_full_.load() ? ConnectOutcome::kRefused : ConnectOutcome::kNobody;
  }

  // ---- what the sink is told on the executor, soon after TellLater
  void TellLater();
  // On the executor; may end the pair, as TellUntaken, TellReports and FinishFailure may.
  void Tell();
  // That no wire has taken the attempt.
  void TellUntaken();
  // Once for each call of ReportLater. A peer may cause them faster than they are told: what waits
  // is counted.
  enum Report : uint8_t { kDroppedMessage, kRefusedWrite, kRefusedRead, kReports };
  void ReportLater(Report what);
  void TellReports();

  // ---- the end
  void LockAll();
  void UnlockAll();
  // Goes to Error and flushes, with every lock; the link to disconnect, if there was one. `broken`:
  // what breaks off is told, by its receive or as damage; null if the owner ends it abruptly.
  struct Broken {
    Status verdict_for_peer;
    Damage damage;
  };
  Link* EnterError(Status verdict, Broken* broken = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  Damage EndOpenWrite(OpenWrite open, Status verdict_for_peer);
  void FlushQueues(Status oldest);
  // Ends a connection that fails.
  void FinishFailure();
  // May the sink still be told of that connection? Not after Disconnect(kAbrupt), nor once the next
  // attempt has begun.
  bool MayReport(uint64_t connection);
  // For the last time.
  bool TakeReport(uint64_t connection);
  void CheckDrained();
  void AwaitTaken(uint64_t connection);
  void EndUnlessTaken(uint64_t connection, uint64_t taken);
  void CheckTaken(const Attachment& attachment);
  // Fails the connection and tells the peer why.
  Inbound Break(Status verdict_for_peer);
  void FailWith(DisconnectCause cause, Status verdict, Status verdict_for_peer);
  // Of the send at `position`, under a lock that LockAll takes: it breaks the connection.
  void FailSend(uint64_t position, Status status);

  // ---- data path
  enum class Taken : uint8_t { kYes, kNoRoom, kNoId };
  Taken EnqueueSend(const SendRequest& request);
  // For the device, or for the peer: who frames is an RDMA device, or talks to one.
  bool IsTooLong(Opcode opcode, uint64_t length) const {
    return length > max_message_ ||
           (length > kMaxDropBytes && opcode == Opcode::kSend && no_receive_ == NoReceive::kDrop &&
            immediate_form() == ImmediateForm::kFramed);
  }
  PostResult PostSendWhenFull(const SendRequest& request);
  PostResult PostReceiveInError(const ReceiveRequest& request);
  bool FillReceive(uint64_t position, const ReceiveRequest& request);  // false: its ids say no
  // NextToEmit where the next entry needs a closer look. Null: it must wait, or the pair breaks.
  SendEntry* NextToEmitSlow();
  uint32_t ReadsInTheWay();
  // Of the entry at n, the next one. FailInOrder if it may not be emitted at all.
  void CheckBeforeEmission(uint64_t n, SendEntry& entry);
  // It is done without being emitted.
  void Retire(uint64_t n, SendEntry& entry, Status status);
  // Retires one that fails, if it does so alone. False: it waits for others, or the pair breaks.
  bool RetireFailing(uint64_t n, SendEntry& entry);
  // Of a place that was looked at without the lock under which it is reaped: it is that of the
  // request at *position, which is not complete. False, and *position is the last one reaped if
  // that is farther.
  bool IsPending(const SendEntry& entry, uint64_t* position) const;
  void FailInOrder(SendEntry& entry, Status status);
  // As the program is to see it, also before FlushQueues. The lock of the queue where sends
  // complete is held.
  uint8_t StatusToReap(uint64_t n) const {
    const uint8_t status = LoadStatus(sends_.at(n));
    if (n > breaking_send_.load(std::memory_order_relaxed)) [[unlikely]]
      return StatusBehindFailure(n, status);
    return status;
  }
  uint8_t StatusBehindFailure(uint64_t n, uint8_t status) const;
  // Puts an entry that is filled, at `position`, into the queue. False: it is flushed at once.
  bool Enqueue(SendEntry& entry, uint64_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void TellSent();
  bool EnqueueAtomic(const AtomicRequest& request);  // false: no room
  struct Posted {
    uint64_t position = 0;
    bool live = false;  // not flushed at once
    Key old_key = 0;    // of the window
  };
  bool EnqueueBind(const BindRequest& request, Key key, Posted* posted);
  bool Bind(const SendEntry& entry);
  bool draining() const { return (attention_.load(std::memory_order_acquire) & kDraining) != 0; }
  bool SharedReceiveWaits() const;
  bool CheckAll(uint64_t position, uint32_t access) const;
  // Frees the places of completed requests whose completion is suppressed; the lock of the queue
  // where sends complete is held.
  void SkipSuppressed();
  // For one more request of so many segments, with no lock held. Takes every lock: it is for the
  // first requests and whenever more are posted than ever before. False: the queue is full.
  template <typename Entry>
  bool MakeRoom(WorkQueue<Entry>& queue, size_t segments);
  Inbound NoReceiveHere();
  Inbound RefuseReceive(Status status);
  // Fills the receive at `position`, the first that is not done, and shows it to polls. One that
  // fails has neither length nor trailer.
  void CompleteReceive(uint64_t position, Opcode opcode, Status status, uint32_t length = 0,
                       const Trailer& trailer = {});
  Inbound FinishSpecial(Message message, uint32_t length, const Trailer& trailer);
  Inbound RefuseWrite(bool has_immediate);
  bool Check(const Segment& segment, uint64_t offset, uint32_t n, uint32_t access) const {
    return regions_.Check(segment.key, segment.address + offset, n, access, domain_);
  }
  // What Check does not know: addresses from 0, windows of this pair alone. Null if refused.
  unsigned char* Resolve(Key key, uint64_t address, uint32_t n, uint32_t access) const;
  // Calls copy for the pieces of [offset, offset + n) of `segments`; false if a check fails.
  template <typename Copy>
  bool Walk(absl::Span<const Segment> segments, uint64_t offset, uint32_t n, uint32_t access,
            Copy&& copy) const;
  // The link's. Where memory ends in the middle the connection breaks: what was sent or consumed is
  // not known then.
  void PumpLink(Link& link) {
    try {
      link.Pump();
    } catch (const std::bad_alloc&) {
      Fail(Status::kTransport);
    }
  }
  bool PollLink(Link& link, int budget) {
    try {
      return link.Poll(budget);
    } catch (const std::bad_alloc&) {
      Fail(Status::kTransport);
      return true;
    }
  }
  bool Poll(Link& link, const Attachment& attachment, int n);
  bool TryPump(Link& link);
  void LookLater();
  // Progress; true: something went on.
  bool ServeLink(Attachment& attachment, int n);
  void CountActivity();
  void PayAttention(const Attachment& attachment, int n);
  void NotifyOther(const Attachment& attachment);
  void NotifyAll();
  Attachment* Other(const Attachment& attachment) {
    if (attachment_count_ == 1) return nullptr;
    return &attachments_[&attachment == &attachments_[0] ? 1 : 0];
  }
  // Up to `n` completions; of sends and receives below position `end`.
  int Reap(const Attachment& attachment, Completion* out, int n);
  int ReapDue(Completion* out, int n);
  int ReapSends(Completion* out, int n, uint64_t end);
  int ReapReceives(Completion* out, int n, uint64_t end);
  void NoteDue();

  SoftContext& context_;
  RegionTable& regions_;
  const std::shared_ptr<Anchor<&SoftQueuePair::Tell, SoftQueuePair>> anchor_;
  ConnectionSink* const sink_;
  void* const user_context_;

  // Set in Idle only, under every lock.
  DomainId domain_ = 0;
  const DomainId own_domain_;  // of windows that are bound to this pair
  NoReceive no_receive_ = NoReceive::kHold;
  uint32_t remote_access_ = 0;
  uint32_t max_reads_in_ = 0;
  uint32_t max_reads_out_ = 0;
  uint32_t reads_out_limit_ = 0;

  SoftCompletionQueue& home_;
  SoftCompletionQueue& send_home_;
  Attachment attachments_[2];  // [0] home; [1] sends, if they complete elsewhere
  int attachment_count_ = 1;

  std::atomic<Link*> link_{nullptr};  // of a connection: given up under every lock
  // The oldest send that has failed and takes the connection along, until FlushQueues has settled
  // all. Stored before its status, so that whoever polls beyond it knows.
  std::atomic<uint64_t> breaking_send_{kNoSend};
  std::atomic<State> state_{State::kIdle};
  std::atomic<bool> receiving_{false};  // Link::Start was called: Poll may be
  std::atomic<bool> failing_{false};
  std::atomic<uint8_t> attention_{0};  // Attention
  std::atomic<bool> hot_{false};       // changes under the locks of all its queues
  std::atomic<bool> held_{false};      // a message waits for a receive
  std::atomic<bool> heard_{false};
  std::atomic<bool> no_resources_{false};  // of this attempt: NoteNoResources
  std::atomic<bool> backlog_full_{false};  // and NoteBacklogFull
  std::atomic<ImmediateForm> immediate_form_{ImmediateForm::kNone};
  std::atomic<uint64_t> confirm_address_{0};
  std::atomic<Key> confirm_key_{0};  // 0: none
  std::atomic<uint16_t> local_port_{0};
  std::atomic<uint32_t> activity_{0};
  std::atomic<bool> look_due_{false};  // LookLater's
  uint32_t max_message_ = 0;           // never changes

  alignas(64) PassLock send_lock_;
  std::atomic<uint32_t> incomplete_{0};  // emitted with kLater, not complete
  std::atomic<uint32_t> reads_out_{0};
  std::atomic<const void*> next_line_{nullptr};  // ExpectStoreTo's
  WorkQueue<SendEntry> sends_;

  SpinLock receive_lock_;
  WorkQueue<ReceiveEntry> receives_;
  SoftSharedReceiveQueue* const shared_;  // or null; then receives_ is filled by StartReceive

  // Inbound lock.
  Message message_ = Message::kNone;
  Message opening_ = Message::kOpen;  // what StartReceive makes of it
  Key invalidated_ = 0;
  bool write_refused_ = false;
  bool corrupt_ = false;
  uint64_t read_cursor_ = 0;  // no read that is not complete lies before it
  // Where both complete in one queue: a poll that was full before its turn came to the receives
  // below `receives` (0: none) lets the sends below `sends` go before them and no others, so that
  // who posts a send for each completion gets its receives.
  struct Due {
    uint64_t sends = 0;
    uint64_t receives = 0;
  };
  Due due_;

  Mutex control_;
  uint64_t connection_ ABSL_GUARDED_BY(control_) = 0;  // counts attempts and connections
  size_t attempt_wire_ ABSL_GUARDED_BY(control_) = 0;
  bool may_start_again_ ABSL_GUARDED_BY(control_) = false;  // nobody was on a wire before it
  ConnectOptions attempt_ ABSL_GUARDED_BY(control_);
  std::vector<uint8_t> attempt_data_ ABSL_GUARDED_BY(control_);
  ConnectOutcome untaken_ ABSL_GUARDED_BY(control_) = ConnectOutcome::kNobody;  // TellUntaken's
  Executor::TimerId leave_timer_ ABSL_GUARDED_BY(control_) = 0;                 // of AwaitTaken
  // The sink may still be told of this connection; cleared by Disconnect(kAbrupt).
  std::atomic<bool> may_report_{false};
  std::atomic<uint32_t> reports_[kReports] = {};  // to be told
  mutable SpinLock fail_lock_;
  DisconnectCause fail_cause_ ABSL_GUARDED_BY(fail_lock_) = DisconnectCause::kLocal;
  Status fail_verdict_ ABSL_GUARDED_BY(fail_lock_) = Status::kFlushed;
  Status peer_verdict_ ABSL_GUARDED_BY(fail_lock_) = Status::kSuccess;

  struct ReceiveWaiter final : ReceiveLine::Waiter {
    explicit ReceiveWaiter(SoftQueuePair* owner) : pair(owner) {}
    SoftQueuePair* const pair;
  };
  ReceiveWaiter receive_waiter_{this};  // the shared receive queue's lock
};

}  // namespace viaduct::verbs

#include "verbs/soft/queue_pair_inline.h"  // IWYU pragma: export

#endif  // VIADUCT_VERBS_SOFT_QUEUE_PAIR_H_
