// A queue pair without a transport: work queues, states, checks. Wires attach a Link to it.
//
// The semantics of requests are decided here, once, for every wire: which receive a message takes
// and what happens to a message that finds none, where bytes may be placed, which request is
// emitted next, what completes with which status, what is flushed. A wire moves bytes and reports
// events.
//
// Locks, in this order (a thread may skip locks, but never go back):
//   control_               state changes; held during Wire::Connect, Link::Start and the calls
//                          that EnterError makes to the link, never during Link::Disconnect or a
//                          sink call
//   inbound, send queue's  the PassLocks of the completion queues where receives (the home) and
//                          sends complete; taken in the order of their addresses, or tried
//   send_lock_             posting and emission
//   receive_lock_          posting of receives
// Sinks run on the executor, with none of these locks held.
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

// How the pair responds to something inbound.
enum class Inbound : uint8_t {
  kOk,
  kHeld,     // no receive yet: consume nothing, make the same call in a later Poll
  kDropped,  // consume the bytes and discard them
  kBroken,   // the connection is breaking: consume nothing more
};

// What comes with the end of a message.
struct Trailer {
  uint32_t immediate = 0;
  bool has_immediate = false;
  bool cut = false;  // immediate data were due, but will not come
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
  // ---- Connecting. On the executor, no lock held. A wire reports at most one outcome per attempt,
  // and says which link it is about, since the pair may have disconnected and begun its next
  // attempt. A wire that lost its pair (Link::Disconnect was called) reports none.

  // For the wire's IncomingConnection::Accept: Idle -> Connecting; `link` belongs to this pair
  // until Link::Disconnect. FailedPrecondition if not Idle; then nothing has happened. Any thread.
  absl::Status Attach(Link& link);
  // Connecting -> Connected: the sink's OnConnected, then Link::Start. The passive side calls it
  // when the peer is known to have the answer, with no private data. False: the pair is gone or has
  // disconnected meanwhile, and the link may have been destroyed.
  bool Established(const Link& from, absl::Span<const uint8_t> private_data);
  // Connecting -> Idle. True: the pair has let go of the link, which gets no Disconnect. False:
  // the pair disconnected first, and Disconnect is called or being called.
  bool ConnectFailed(const Link& from, ConnectOutcome outcome,
                     absl::Span<const uint8_t> private_data);
  // This wire found nobody: the context's next wire is tried; without one, the outcome is kNobody.
  // Result as above.
  bool NotHere(const Link& from) { return TryWires(from, /*again=*/false); }
  // True if an earlier wire, which had found nobody, finds a listener by now: it came up between
  // the attempts on the two wires. Always false after NotHere or StartAgain. On the executor.
  bool IsServedNearer();
  // Starts the attempt again with the first wire. Result as above.
  bool StartAgain(const Link& from) { return TryWires(from, /*again=*/true); }
  State state() const { return state_.load(std::memory_order_acquire); }

  bool ReadsOutstanding() const { return reads_out_.load(std::memory_order_relaxed) != 0; }

  // A wire found nobody because it lacked memory or descriptors: the attempt's outcome becomes
  // kNoResources instead of kNobody, since there may be a listener.
  void NoteNoResources() { no_resources_.store(true, std::memory_order_relaxed); }
  // A wire found a listener that has no room for one more request: the attempt's outcome becomes
  // kRefused instead of kNobody, unless it is kNoResources.
  void NoteBacklogFull() { backlog_full_.store(true, std::memory_order_relaxed); }
  void NotePeerHeard() { heard_.store(true, std::memory_order_relaxed); }
  void SetLocalPort(uint16_t port) { local_port_.store(port, std::memory_order_relaxed); }
  // What was agreed with the peer, before Established; 0 forbids reads.
  void SetReadsOut(uint32_t reads) { reads_out_limit_ = reads; }
  uint32_t max_reads_in() const { return max_reads_in_; }
  uint32_t max_reads_out() const { return max_reads_out_; }
  // How the immediate data of sends travels (kNative: iWARP has its own way). Fixed when the link
  // starts. The pair strips immediate data that may not travel, so shm and sim need not check: both
  // of their ends are soft devices, which agree on kNative or kNone.
  ImmediateForm immediate_form() const { return immediate_form_.load(std::memory_order_relaxed); }
  // What a confirming read asks for; null: no bytes. Fixed when the form is.
  std::optional<ConfirmationWord> confirm_by() const;

  // ---- The end. Any thread, even under any of the pair's locks; the first call wins, others are
  // ignored. From then on NextToEmit returns null and Poll is not called. Soon after, on the
  // executor, the oldest emitted and incomplete request completes with `verdict` (kFlushed: like
  // the others), all others are flushed, and Link::Disconnect and the sink (kBroken) are called.
  // `verdict`: what the peer said (kRemoteAccess, kRemoteOperation, kReceiverNotReady), kTransport
  // when the connection was lost, kFlushed otherwise.
  void Fail(Status verdict) { FailWith(DisconnectCause::kBroken, verdict, Status::kTransport); }
  // The peer of `from` has disconnected in order: kPeer. On the executor, no lock held. Messages
  // that it sent before, and for which there is no receive, delay the end until all are taken, none
  // was taken for a second, or a request of this side waits for an answer.
  void PeerLeft(const Link& from);

  // Before Fail, inside Poll: what arrived fails its checksum.
  void SetCorrupt() { corrupt_ = true; }

  // After kBroken: what the peer is to learn, for a wire that can express it.
  Status peer_verdict() const {
    SpinLockHolder holder(&fail_lock_);
    return peer_verdict_;
  }

  // ---- Progress. The wire calls Attend on the executor when something arrived or room appeared;
  // no lock held. Polls the link, pumps, and marks and wakes the completion queues concerned. True
  // if the link made progress. A link that is not Connected is not polled.
  bool Attend();
  // Something arrived on a cold link: only marks and wakes the completion queues. Any thread; the
  // caller ensures that the pair exists (e.g. by a lock that Link::Disconnect also takes).
  void MarkArrived();

  // ---- Emission, inside Link::Pump (send lock held).

  // The request to emit or to continue; null: there is none, or it must wait (fence, limit of
  // reads), or the pair is broken.
  SendEntry* NextToEmit();
  // The memory of an entry that has exactly one segment, which passes Check. Null in all other
  // cases: use Gather.
  const unsigned char* WholeSegment(const SendEntry& entry) const;
  // The position of the request that NextToEmit returned; stays valid until it is complete.
  uint64_t emit_position() const { return sends_.done.load(std::memory_order_relaxed); }
  // Calls copy(from, at, bytes) for the pieces of [offset, offset + n) of the entry's local
  // memory, `at` counting from 0. False: a check failed, the pair is breaking, leave Pump.
  template <typename Copy>
  bool Gather(const SendEntry& entry, uint32_t offset, uint32_t n, Copy&& copy);
  // The operands of an atomic that NextToEmit returned.
  Operands operands() const { return sends_.operands(emit_position()); }
  // The whole request has been emitted. kNow: it is complete. kLater: Complete or FinishRead
  // follows; always so for reads and atomics.
  enum class Completes : bool { kNow, kLater };
  void Emitted(Completes when);
  // Inside Pump or Poll, for requests that were emitted with kLater; in any order.
  void Complete(uint64_t position, Status status);
  // The oldest emitted send or write that is not complete, at or after `*position`, which is set to
  // its position. Null: none. Inside Poll.
  SendEntry* NextIncomplete(uint64_t* position);
  // The cache line, watched by a peer, into which the next request will be written: PostSend
  // prefetches it while it prepares the request. A hint, which may outlive the link.
  void ExpectStoreTo(const void* line) { next_line_.store(line, std::memory_order_relaxed); }

  // ---- Inbound, inside Link::Poll (inbound lock held). After kBroken leave Poll.

  // A send: StartReceive once at its beginning, PlaceReceive for each piece (in order or not),
  // FinishReceive with its length. A wire need not remember that a message is being dropped: the
  // later calls return kDropped, too.
  Inbound StartReceive();
  template <typename Copy>  // copy(to, at, bytes), `at` counting from 0
  Inbound PlaceReceive(uint64_t offset, uint32_t n, Copy&& copy);
  Inbound FinishReceive(uint32_t length, const Trailer& trailer);

  // All three calls at once, with copy(to), for a message that has arrived whole. False: nothing
  // has happened, and the message needs the three calls.
  template <typename Copy>
  bool ReceiveWhole(uint32_t length, bool solicited, Copy&& copy);

  // The message ends the window `key` of this pair, before its receive completes: called between
  // StartReceive and FinishReceive, or directly before the first call of StartReceive.
  Inbound Invalidate(Key key);

  // A write: PlaceWrite for each piece, then FinishWrite with the total length. FinishWrite may
  // return kHeld if there is immediate data. A piece is copied in two parts, of which the last goes
  // by a place of ours.
  template <typename Copy>  // copy(to, at, bytes), `at` counting from 0
  Inbound PlaceWrite(Key key, uint64_t address, uint32_t n, bool has_immediate, Copy&& copy);
  Inbound FinishWrite(uint32_t length, const Trailer& trailer);
  // Immediate data that arrive after their write, which FinishWrite has finished without them;
  // `refused`: FinishWrite returned kDropped. May return kHeld.
  Inbound ReceiveWritten(uint32_t length, const Trailer& trailer, bool refused);

  // The peer's read of [address, address + n): check again for every piece, under the same lock
  // (inbound or send) as the copying. kOk: `*from` is readable as long as the lock is held.
  Inbound CheckRead(Key key, uint64_t address, uint32_t n, const unsigned char** from);
  // What was wrong with a write, read or atomic that has just been refused, for a wire that can
  // tell the peer.
  Refusal WhyRefused(Key key, uint32_t access) const;

  // The peer's atomic: the 64 bits become next(old); `*original` is their old value. Any result but
  // kSuccess: it was refused, the result is what the peer is to learn, and the connection is
  // breaking.
  template <typename Next>
  Status UpdateAtomic(Key key, uint64_t address, uint64_t* original, Next&& next);

  // For the answer to the oldest read or atomic. OldestRead: null if none is outstanding (the peer
  // lies). The wire keeps its progress in entry->offset.
  SendEntry* OldestRead();
  template <typename Copy>
  Inbound PlaceRead(const SendEntry& entry, uint32_t offset, uint32_t n, Copy&& copy);
  void FinishRead();

  // A message is held and no receive for it was posted since: it does not count as an arrival.
  bool holding() const {
    return held_.load(std::memory_order_relaxed) &&
           receives_.done.load(std::memory_order_relaxed) ==
               receives_.posted.load(std::memory_order_acquire) &&
           (shared_ == nullptr || !SharedReceiveWaits());
  }
  // A send is posted and not emitted, or emitted and not complete: the link waits for room, a
  // confirmation or an answer.
  bool SendsWait() const {
    return SendsUnemitted() || incomplete_.load(std::memory_order_relaxed) != 0;
  }
  bool SendsUnemitted() const {
    return sends_.done.load(std::memory_order_acquire) !=
           sends_.posted.load(std::memory_order_relaxed);
  }

  // ============================================ for completion queues (attachment.queue locked)
  // Makes progress, then takes up to `n` completions.
  int Serve(Attachment& attachment, Completion* out, int n);
  // 0: nothing to reap. Otherwise a number that changes when more becomes reapable.
  uint64_t Reapable(const Attachment& attachment);
  bool Arrived() const;
  bool HasWork(const Attachment& attachment) { return Reapable(attachment) != 0 || Arrived(); }
  // After cooling: puts the pair into the ready list of every queue where it has work.
  void MarkIfHasWork();
  bool hot() const { return hot_.load(std::memory_order_relaxed); }
  void TryHeat(Attachment& attachment);
  // False: the lock of the other queue, or the send lock, is busy. Sets *fence if a heavy fence is
  // due before Arrived is checked.
  bool TryCool(Attachment& attachment, bool* fence);
  // Receives taken out of the shared receive queue and not reaped.
  uint64_t TakenReceives() const {
    return receives_.posted.load(std::memory_order_relaxed) -
           receives_.reaped.load(std::memory_order_relaxed);
  }
  // This pair's place among the pairs whose messages wait for receives of that queue.
  ReceiveLine::Waiter& receive_waiter() { return receive_waiter_; }
  static SoftQueuePair& OfWaiter(ReceiveLine::Waiter& waiter) {
    return *static_cast<ReceiveWaiter&>(waiter).pair;
  }
  bool HoldsMessages() const { return no_receive_ == NoReceive::kHold; }
  uint32_t activity() const { return activity_.load(std::memory_order_relaxed); }

 private:
  // kInvalidating: open, and its completion will show invalidated_.
  enum class Message : uint8_t { kNone, kOpen, kInvalidating, kDiscarding };
  // What Serve has to check for.
  enum Attention : uint8_t {  // bit set
    kDraining = 1,            // Disconnect(kGraceful)
    kFullRing = 2,            // a message is held until completions of shared receives are reaped
    kPeerLeft = 4,
  };
  static constexpr uint64_t kNoSend = UINT64_MAX;  // no position
  // In SendEntry::flags, beside RequestFlag: not to be emitted; completes with the status in
  // `cookie` when everything before it has completed.
  static constexpr uint16_t kFailsInOrder = 0x8000;
  // A bind whose poster still waits until the window's previous key is out of use.
  static constexpr uint16_t kWithdrawing = 0x4000;

  SoftQueuePair(SoftContext& context, const QueuePairOptions& options);
  absl::Status Apply(const QueuePairOptions& options);

  // ---- connecting
  void Begin(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  // Forgets what was agreed with the peer of the last attempt.
  void ForgetTerms();
  // Tries wires from attempt_wire_ on; false: none is left.
  bool StartAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  bool TryWires(const Link& from, bool again);  // the remaining wires, or all of them again
  // `link` is that of the attempt under way.
  bool IsAttemptOf(const Link& link) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_) {
    return state_.load() == State::kConnecting && link_.load() == &link;
  }
  void EndAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(control_);
  // The outcome when no wire has found a listener.
  ConnectOutcome OutcomeIfNobody() const {
    if (no_resources_.load()) return ConnectOutcome::kNoResources;
    return backlog_full_.load() ? ConnectOutcome::kRefused : ConnectOutcome::kNobody;
  }

  // ---- what is reported to the sink on the executor, soon after TellLater
  void TellLater();
  // On the executor; may destroy the pair, as TellUntaken, TellReports and FinishFailure may.
  void Tell();
  // Reports that no wire has taken the attempt.
  void TellUntaken();
  // Reported once for each call of ReportLater. A peer may cause reports faster than the sink gets
  // them: those that wait are counted.
  enum Report : uint8_t { kDroppedMessage, kRefusedWrite, kRefusedRead, kReports };
  void ReportLater(Report what);
  void TellReports();

  // ---- the end
  void LockAll();
  void UnlockAll();
  // Goes to Error and flushes, taking every lock; returns the link to disconnect, if there was one.
  // `broken`: a write that breaks off is reported, through its receive or as damage; null if the
  // owner ends the connection abruptly.
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
  // May the sink still get reports of that connection? Not after Disconnect(kAbrupt), nor once the
  // next attempt has begun.
  bool MayReport(uint64_t connection);
  // The same for the last report: none may follow.
  bool TakeReport(uint64_t connection);
  void CheckDrained();
  void AwaitTaken(uint64_t connection);
  void EndUnlessTaken(uint64_t connection, uint64_t taken);
  void CheckTaken(const Attachment& attachment);
  // Under the inbound lock, when the peer has left: a request of this side gets no answer any more.
  bool LeftUnanswered(Link& link);
  // Fails the connection and tells the peer why.
  Inbound Break(Status verdict_for_peer);
  void FailWith(DisconnectCause cause, Status verdict, Status verdict_for_peer);
  // The send at `position` fails with `status` and breaks the connection. Under a lock that LockAll
  // takes.
  void FailSend(uint64_t position, Status status);

  // ---- data path
  enum class Taken : uint8_t { kYes, kNoRoom, kNoId };
  Taken EnqueueSend(const SendRequest& request);
  // Too long for the device, or for the peer: with framing, one of the two is an RDMA device.
  bool IsTooLong(Opcode opcode, uint64_t length) const {
    return length > max_message_ ||
           (length > kMaxDropBytes && opcode == Opcode::kSend && no_receive_ == NoReceive::kDrop &&
            immediate_form() == ImmediateForm::kFramed);
  }
  PostResult PostSendWhenFull(const SendRequest& request);
  PostResult PostReceiveInError(const ReceiveRequest& request);
  // False: the IdSource of the request refused.
  bool FillReceive(uint64_t position, const ReceiveRequest& request);
  // NextToEmit where the next entry needs closer inspection. Null: none, it must wait, or the pair
  // breaks.
  SendEntry* NextToEmitSlow();
  uint32_t ReadsInTheWay();
  // Checks the entry at n, the next to emit. Calls FailInOrder if it may not be emitted at all.
  void CheckBeforeEmission(uint64_t n, SendEntry& entry);
  // The entry is done without being emitted.
  void Retire(uint64_t n, SendEntry& entry, Status status);
  // Retires an entry that fails without breaking the connection. False: it waits for earlier
  // requests, or the pair breaks.
  bool RetireFailing(uint64_t n, SendEntry& entry);
  // For an entry that was read without the lock under which it is reaped: true if it is still that
  // of the request at *position, which is not complete. Otherwise false, and *position moves on to
  // the last request reaped, if that is later.
  bool IsPending(const SendEntry& entry, uint64_t* position) const;
  void FailInOrder(SendEntry& entry, Status status);
  // The status as the program is to see it, also before FlushQueues. The lock of the queue where
  // sends complete is held.
  uint8_t StatusToReap(uint64_t n) const {
    const uint8_t status = LoadStatus(sends_.at(n));
    if (n > breaking_send_.load(std::memory_order_relaxed)) [[unlikely]]
      return StatusBehindFailure(n, status);
    return status;
  }
  uint8_t StatusBehindFailure(uint64_t n, uint8_t status) const;
  // Puts the filled entry at `position` into the queue. False: it is flushed at once.
  bool Enqueue(SendEntry& entry, uint64_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void TellSent();
  bool EnqueueAtomic(const AtomicRequest& request);  // false: no room
  struct Posted {
    uint64_t position = 0;
    bool live = false;  // not flushed at once
    Key old_key = 0;    // the window's previous key
  };
  bool EnqueueBind(const BindRequest& request, Key key, Posted* posted);
  bool Bind(const SendEntry& entry);
  bool draining() const { return (attention_.load(std::memory_order_acquire) & kDraining) != 0; }
  bool SharedReceiveWaits() const;
  bool CheckAll(uint64_t position, uint32_t access) const;
  // Frees the slots of completed requests whose completion is suppressed; the lock of the queue
  // where sends complete is held.
  void SkipSuppressed();
  // Makes room for one more request of `segments` segments; no lock is held. Takes every lock, but
  // is needed only for the first requests and whenever more are posted than ever before. False: the
  // queue is full.
  template <typename Entry>
  bool MakeRoom(WorkQueue<Entry>& queue, size_t segments);
  Inbound NoReceiveHere();
  Inbound RefuseReceive(Status status);
  // Completes the receive at `position`, the first that is not done, and makes it visible to polls.
  // A receive that fails has neither length nor trailer.
  void CompleteReceive(uint64_t position, Opcode opcode, Status status, uint32_t length = 0,
                       const Trailer& trailer = {});
  Inbound FinishSpecial(Message message, uint32_t length, const Trailer& trailer);
  Inbound RefuseWrite(bool has_immediate);
  bool Check(const Segment& segment, uint64_t offset, uint32_t n, uint32_t access) const {
    return regions_.Check(segment.key, segment.address + offset, n, access, domain_);
  }
  // For what Check does not cover: zero-based addresses, windows of this pair. Null if refused.
  unsigned char* Resolve(Key key, uint64_t address, uint32_t n, uint32_t access) const;
  // Calls copy for the pieces of [offset, offset + n) of `segments`; false if a check fails.
  template <typename Copy>
  bool Walk(absl::Span<const Segment> segments, uint64_t offset, uint32_t n, uint32_t access,
            Copy&& copy) const;
  // Link::Pump and Link::Poll. If one runs out of memory, the connection breaks, because it is not
  // known what was sent or consumed.
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
  // Polls and pumps the link; true if it made progress.
  bool ServeLink(Attachment& attachment, int n);
  void CountActivity();
  void PayAttention(const Attachment& attachment, int n);
  void NotifyOther(const Attachment& attachment);
  void NotifyAll();
  Attachment* Other(const Attachment& attachment) {
    if (attachment_count_ == 1) return nullptr;
    return &attachments_[&attachment == &attachments_[0] ? 1 : 0];
  }
  // Each takes up to `n` completions; those with `end`, of requests below position `end` only.
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
  const DomainId own_domain_;  // the domain of windows that are bound to this pair
  NoReceive no_receive_ = NoReceive::kHold;
  uint32_t remote_access_ = 0;
  uint32_t max_reads_in_ = 0;
  uint32_t max_reads_out_ = 0;
  uint32_t reads_out_limit_ = 0;

  SoftCompletionQueue& home_;
  SoftCompletionQueue& send_home_;
  Attachment attachments_[2];  // [0] home; [1] sends, if they complete elsewhere
  int attachment_count_ = 1;

  std::atomic<Link*> link_{nullptr};  // when connected, cleared only under every lock
  // The oldest send that failed and so breaks the connection, until FlushQueues has settled all.
  // Stored before its status, so that a poll that reaps beyond it knows.
  std::atomic<uint64_t> breaking_send_{kNoSend};
  std::atomic<State> state_{State::kIdle};
  std::atomic<bool> receiving_{false};  // Link::Start was called, so Poll may be called
  std::atomic<bool> failing_{false};
  std::atomic<uint8_t> attention_{0};  // Attention
  std::atomic<bool> hot_{false};       // changes under the locks of all its queues
  std::atomic<bool> held_{false};      // a message waits for a receive
  std::atomic<bool> heard_{false};
  std::atomic<bool> no_resources_{false};  // NoteNoResources was called in this attempt
  std::atomic<bool> backlog_full_{false};  // NoteBacklogFull was
  std::atomic<ImmediateForm> immediate_form_{ImmediateForm::kNone};
  std::atomic<uint64_t> confirm_address_{0};
  std::atomic<Key> confirm_key_{0};  // 0: none
  std::atomic<uint16_t> local_port_{0};
  std::atomic<uint32_t> activity_{0};
  std::atomic<bool> look_due_{false};  // LookLater has set its timer
  uint32_t max_message_ = 0;           // never changes

  alignas(64) PassLock send_lock_;
  std::atomic<uint32_t> incomplete_{0};  // emitted with kLater, not complete
  std::atomic<uint32_t> reads_out_{0};
  std::atomic<const void*> next_line_{nullptr};  // set by ExpectStoreTo
  WorkQueue<SendEntry> sends_;

  SpinLock receive_lock_;
  WorkQueue<ReceiveEntry> receives_;
  SoftSharedReceiveQueue* const shared_;  // may be null; if not, StartReceive fills receives_

  // Guarded by the inbound lock.
  Message message_ = Message::kNone;
  Message opening_ = Message::kOpen;  // what StartReceive sets message_ to
  Key invalidated_ = 0;
  bool write_refused_ = false;
  bool corrupt_ = false;
  uint64_t read_cursor_ = 0;  // all reads before it are complete
  // Used where sends and receives complete in one queue. If a poll is full before it reaches the
  // receives below `receives` (0: no such poll), later polls report only the sends below `sends`
  // before them, so that a program that posts a send for each completion still gets its receives.
  struct Due {
    uint64_t sends = 0;
    uint64_t receives = 0;
  };
  Due due_;

  Mutex control_;
  uint64_t connection_ ABSL_GUARDED_BY(control_) = 0;  // counts attempts and connections
  size_t attempt_wire_ ABSL_GUARDED_BY(control_) = 0;
  // In the first pass an earlier wire found nobody; false once TryWires begins again.
  bool may_start_again_ ABSL_GUARDED_BY(control_) = false;
  ConnectOptions attempt_ ABSL_GUARDED_BY(control_);
  std::vector<uint8_t> attempt_data_ ABSL_GUARDED_BY(control_);
  ConnectOutcome untaken_ ABSL_GUARDED_BY(control_) = ConnectOutcome::kNobody;  // for TellUntaken
  Executor::TimerId leave_timer_ ABSL_GUARDED_BY(control_) = 0;                 // of AwaitTaken
  // The sink may still get reports of this connection; cleared by Disconnect(kAbrupt).
  std::atomic<bool> may_report_{false};
  std::atomic<uint32_t> reports_[kReports] = {};  // waiting for TellReports
  mutable SpinLock fail_lock_;
  DisconnectCause fail_cause_ ABSL_GUARDED_BY(fail_lock_) = DisconnectCause::kLocal;
  Status fail_verdict_ ABSL_GUARDED_BY(fail_lock_) = Status::kFlushed;
  Status peer_verdict_ ABSL_GUARDED_BY(fail_lock_) = Status::kSuccess;

  struct ReceiveWaiter final : ReceiveLine::Waiter {
    explicit ReceiveWaiter(SoftQueuePair* owner) : pair(owner) {}
    SoftQueuePair* const pair;
  };
  ReceiveWaiter receive_waiter_{this};  // guarded by the shared receive queue's lock
};

}  // namespace viaduct::verbs

#include "verbs/soft/queue_pair_inline.h"  // IWYU pragma: export

#endif  // VIADUCT_VERBS_SOFT_QUEUE_PAIR_H_
