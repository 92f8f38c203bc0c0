// One connection, or one attempt: librdmacm's id and the device's queue pair (device_pair.h), which
// are buried with it; but the id may stay to tell the peer (farewell.h). The queue pair of
// verbs/device.h is there before and afterwards.
//
// Owner: a QueuePair, which hears of everything; a request that is not decided has it as well, and
// is not told. Who has it gives it up with Bury, at once and from any thread; the control thread
// destroys it when the device has nothing left to complete.
#ifndef VIADUCT_VERBS_RDMA_CONNECTION_H_
#define VIADUCT_VERBS_RDMA_CONNECTION_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "verbs/base/errand.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/rdma/aside.h"
#include "verbs/rdma/completion_queue.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/device_pair.h"
#include "verbs/rdma/frame_slots.h"
#include "verbs/rdma/memory.h"
#include "verbs/rdma/work_id.h"
#include "verbs/rdma/work_queue.h"

namespace viaduct::verbs::rdma {

class Connection;

// Called on the control thread.
class ConnectionOwner {
 public:
  virtual void OnConnectionEvent(Connection& connection, const CmEvent& event) = 0;
  enum Signal : uint32_t {  // bit set
    kFailed = 1,            // a request failed, or the device ended the pair
    kDrained = 2,           // no send is open, and somebody waits for it
    kDropped = 4,           // messages without a receive: see TakeDropped
    kRefusedWrite = 8,      // the device says that the peer did what it may not
  };
  virtual void OnSignals(Connection& connection, uint32_t signals) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// The pair of verbs/device.h that has it.
struct ConnectionPlace {
  WorkQueue* queues[2] = {nullptr, nullptr};  // sends and receives
  uint32_t peer_access = 0;                   // what the peer may do: Access bits
  Memory* memory = nullptr;
  std::atomic<bool>* ended = nullptr;  // set before anything is flushed that nobody stopped
  bool may_frame = false;              // messages may have frames: see SetFramed
};

class alignas(8) Connection final : public CmHandler, public QpHandler {
 public:
  // Without an id: for a dial, which makes one.
  static Connection* ForDial(Device& device, ConnectionOwner* owner, absl::Status* status);
  static Connection* ForRequest(Device& device, rdma_cm_id* id);

  rdma_cm_id* id() const { return id_; }
  ibv_qp* pair() const { return pair_.handle(); }
  // As the device has it; IBV_QPS_UNKNOWN without a pair, or where it does not say.
  ibv_qp_state PairState() const;

  // From now on signals and events go there.
  void SetOwner(ConnectionOwner* owner);
  // Null before that, and after Bury.
  ConnectionOwner* owner();

  // From now on it has the device's queue pair, whose completions are those of the place's queues.
  // Otherwise as DevicePair::Join, or ResourceExhausted: no memory.
  absl::Status TakePair(DevicePair pair, const ConnectionPlace& place);
  // Receives go into memory of our own, `count` messages of at most `bytes`, and from there to the
  // oldest receive; false: no memory.
  bool ReceiveIntoBounces(int count, uint32_t bytes);
  bool bouncing() const { return !bounces_.empty(); }
  // Release will need no memory although each of `requests` has a bounce. Under the direction's
  // lock; false: no memory.
  bool KeepRoomToLeave(Direction direction, uint32_t requests);

  // The receive has more segments than the device takes.
  bool NeedsBounce(const WorkRecord& record, const Segment* segments) const;

  // Receives get room for a frame, in a slot of their own in front of their memory.
  bool may_frame() const { return !frames_[kReceives].empty() && framing() != Framing::kUnframed; }
  // For frames of a direction's requests, but those of sends that go inline; empty where messages
  // may have none.
  const FrameSlots& frames(Direction direction) const { return frames_[direction]; }
  // Whether the peer's messages have frames, if they may. Until this is known messages that have
  // arrived wait. Under the lock of the receives' queue.
  void SetFramed(bool framed);

  // rdma_resolve_route; its outcome comes as an event, ROUTE_ERROR with an errno if it failed.
  // Control thread, as is the next.
  void ResolveRoute(int milliseconds);
  // rdma_connect; its outcome comes as an event, ADDR_ERROR with an errno if it failed. With the
  // peer's answer the pair is opened to it.
  void Connect(rdma_conn_param parameters, absl::Span<const uint8_t> private_data);

  // Of a request: nobody takes it, and no program has said no.
  void Refuse();
  // The pair is opened to the peer, and rdma_accept called. An errno.
  int Accept(rdma_conn_param parameters);
  // Of a dial on iWARP, where the driver opens the pair: what the peer may do from now on.
  void LimitPeer();
  bool accepted() const { return accepted_; }

  // For posters, under the direction's lock: how many requests went to the device.
  void Posted(Direction direction, int64_t count) {
    posted_[direction].store(posted_[direction].load(std::memory_order_relaxed) + count,
                             std::memory_order_relaxed);
  }
  void Unposted(Direction direction, int64_t count) { Posted(direction, -count); }
  // How many more sends the device takes, beside a nudge.
  uint32_t SendRoom() const {
    return max_sends_ - static_cast<uint32_t>(posted_[kSends].load(std::memory_order_relaxed) -
                                              seen_[kSends].load(std::memory_order_relaxed));
  }
  uint32_t max_segments(Direction direction) const { return pair_.max_segments(direction); }
  // Of a request, so many bytes go inline at most.
  uint32_t max_inline() const { return pair_.max_inline(); }

  // Under the lock of the direction's queue.
  void Complete(Direction direction, const ibv_wc& completion);
  // The same for the usual case: the request has succeeded and nobody waits in front of it, so its
  // completion goes straight to `out[*taken]`. False: nothing has happened.
  bool CompleteInTurn(Direction direction, const ibv_wc& completion, Completion* out, int* taken);
  void CompleteNudge() { nudge_is_open_ = false; }
  // False: released, nobody polls for it.
  bool CompleteShared(const SharedReceive& receive, const ibv_wc& completion);
  // The device has refused `count` parts of a request.
  void Refused(Direction direction, WorkQueue& queue, WorkRecord& record, uint32_t count);
  // A send was refused here: when those before it are done, the connection ends.
  void BreakInTurn(WorkQueue& sends);
  // Somebody waits for kDrained. Under the lock of the sends' queue.
  void AwaitDrain(WorkQueue& sends);

  // Any thread: the owner hears of it soon.
  void Signal(uint32_t signals);
  // The same of what the peer has done over the connection: if the news of that is still on its
  // way, behind set_established. Control thread, or under the lock of the receives' queue.
  void SignalOfPeer(uint32_t signals);
  // Control thread: now.
  void TellSignals();
  uint32_t TakeDropped() { return dropped_.exchange(0); }
  // Under the lock of the receives' queue. Until then a failure is not signalled, and what is
  // flushed stays posted.
  void set_established() {
    established_.store(true, std::memory_order_release);
    if (signals_ != 0) Signal(0);
  }
  // A request has failed, or reads were unanswered when it ended.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void set_failed() { failed_.store(true, std::memory_order_release); }

  // Takes what the device has completed.
  void HarvestAll();
  // Before Stop: the program ends the connection. A request that this cuts in the device was
  // flushed, even if the device tells of it as of a connection that failed (siw, whose TCP did).
  void Cut() { cut_ = true; }
  // Ends it: the peer is told if it was `established`, nothing is placed in memory any more, what
  // the device has completed is taken. Then the work queues are this connection's no longer.
  void Stop(bool established);
  // What the device still held: an attempt that may be repeated keeps it.
  enum class Unfinished : uint8_t { kKeep, kFlush };
  void Release(Direction direction, Unfinished unfinished);
  void Bury();

  // The owner hears of an attempt's failure as if librdmacm had said it. Once; any thread.
  void FailLater(rdma_cm_event_type type, int error);

  void OnCmEvent(const CmEvent& event) override;
  void OnQpEvent(ibv_event_type type) override;

 private:
  enum class Framing : uint8_t { kUnknown, kFramed, kUnframed };
  struct Landing {
    Bounce memory;
    bool leads = false;  // a frame's slot is in front of it
  };

  Connection(Device& device, rdma_cm_id* id) : device_(device), id_(id) {}
  ~Connection();

  // What its pair was made for; empty without one.
  const PairOptions& options() const { return pair_.options(); }
  Framing framing() const { return framing_.load(std::memory_order_relaxed); }
  bool AnswerIsMissing(const WorkRecord& record) const;
  Status ReceiveError(WorkQueue& queue, const WorkRecord& record, Status status) const;
  void NoteFailure(const ibv_wc& completion);
  void Take(Direction direction, WorkQueue& queue, const ibv_wc& completion);
  void Receive(WorkRecord& record, const ibv_wc& completion);
  void ReceiveBounced(WorkQueue& queue, const ibv_wc& completion);
  Status CopyBounced(WorkQueue& queue, WorkRecord& record, uint32_t slot, const ibv_wc& completion);
  Status ReceiveBehindFrame(WorkQueue& queue, WorkRecord& record, uint32_t bytes);
  Status ReceiveUnframed(WorkQueue& queue, WorkRecord& record, uint32_t bytes);
  bool TakeFrame(std::span<const uint8_t, kFrameBytes> frame, uint32_t bytes, WorkRecord* record);
  void Break();
  // The device has refused a request: the connection ends, unless it is over. That is the answer.
  bool NoteRefusal();
  // Between a receive's memory and `from` or `to`.
  template <typename Copy>
  Status Walk(const WorkRecord& record, const Segment* segments, uint32_t length, Copy&& copy);
  Status Scatter(const WorkRecord& record, const Segment* segments, const unsigned char* from,
                 uint32_t length);
  Status Gather(const WorkRecord& record, const Segment* segments, unsigned char* to,
                uint32_t length);
  void Finish(Direction direction, WorkQueue& queue, WorkRecord& record);
  bool PostBounce(uint32_t slot);
  void CheckTurn(WorkQueue& sends);
  // Of a connection that was released the control thread may destroy this now.
  void CountSeen(Direction direction) {
    seen_[direction].store(seen_[direction].load(std::memory_order_relaxed) + 1,
                           std::memory_order_release);
  }
  // The device says when the pair has taken its last receive from the shared queue, and has not.
  bool AwaitsLastReceive() const {
    const bool received = established_ || accepted_ || connected_;
    return received && options().shared != nullptr && pair() != nullptr &&
           device_.tells_last_receive() && !has_last_receive_;
  }
  // InfiniBand and RoCE: the peer has answered a dial. As librdmacm tells it of an id that has a
  // pair: ESTABLISHED, or CONNECT_ERROR with an errno.
  CmEvent Confirm(const CmEvent& answer);
  // Which pair that is, of an id that does not know it.
  void Name(rdma_conn_param* parameters) const;
  // iWARP's peer speaks first, and until siw has heard it the kernel ends nothing: it lets who
  // tries wait for ever, and follows with a BUG() of iw_cm.
  bool half_open() const { return device_.iwarp() && accepted_ && !heard_; }
  // Control thread: of a connection that was dialled. It is said twice.
  void NudgeLater();
  void Nudge();
  bool OwesNudge();
  // The peer may not know yet of what was received here.
  bool OwesAnswers() const;
  void TellFailure();
  void Report(rdma_cm_event_type type, int error);
  // Control thread. A call of librdmacm for id_, aside (aside.h) if it waits for anybody. An
  // errno that it returns is reported as an event of that type.
  void Dial(rdma_cm_event_type failure, bool waits, std::function<int()> call);
  void MakeDial();  // there
  void OnDialled();
  bool Dead();
  void BeginBurial() { TryToDestroy(0); }
  void TryToDestroy(int tries);
  void Destroy();
  void MakeDestruction();  // control thread, or aside (aside.h)
  void Delete();
  void DestroyId();
  void DestroyPair();

  Device& device_;
  rdma_cm_id* id_;
  DevicePair pair_;  // of id_
  uint32_t peer_access_ = 0;
  Memory* memory_ = nullptr;
  std::atomic<bool>* ended_ = nullptr;
  FrameSlots frames_[2];
  std::atomic<Framing> framing_{Framing::kUnknown};
  std::vector<ibv_wc> early_;  // messages that came before it was known; under the receives' lock
  std::vector<Landing> bounces_;
  uint32_t next_bounce_ = 0;
  std::vector<Bounce> left_[2];  // of requests that the device was not done with
  // Each under its queue's lock; null when released.
  WorkQueue* queues_[2] = {nullptr, nullptr};
  std::atomic<uint64_t> posted_[2] = {};
  std::atomic<uint64_t> seen_[2] = {};
  uint32_t max_sends_ = 0;      // of the program's that the device takes
  bool nudge_is_open_ = false;  // it is at the device; under the lock of the sends' queue
  std::atomic<uint32_t> signals_{0};
  std::atomic<uint32_t> dropped_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> established_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> cut_{false};
  bool dialing_ = false;                // control thread: a call of Dial is under way
  bool has_route_ = false;              // control thread: found meanwhile
  bool dialled_ = false;                // rdma_connect was called
  bool buried_ = false;                 // control thread: destroyed when nothing goes on any more
  std::atomic<bool> connected_{false};  // so the last event said that is not IsOfTheWay
  std::atomic<bool> accepted_{false};
  std::atomic<bool> heard_{false};     // an event came that is not IsOfTheWay
  bool unstopped_ = false;             // it was half open when it was to stop
  bool has_last_receive_ = false;      // control thread
  int nudges_ = 0;                     // control thread
  Executor::TimerId nudge_timer_ = 0;  // control thread; 0: none is due
  rdma_cm_event_type failure_ = RDMA_CM_EVENT_CONNECT_ERROR;  // FailLater's
  int failure_error_ = 0;
  int dial_error_ = 0;  // of the last call of Dial
  std::function<int()> dial_call_;
  rdma_cm_event_type dial_failure_ = RDMA_CM_EVENT_ADDR_ERROR;
  Errand<&Connection::TellSignals, Connection*> signal_errand_;
  Errand<&Connection::TellFailure, Connection*> failure_errand_;
  Errand<&Connection::OnDialled, Connection*> dial_errand_;
  AsideErrand<&Connection::MakeDial, Connection> dial_aside_;
  AsideErrand<&Connection::MakeDestruction, Connection> destruction_aside_;
  Errand<&Connection::BeginBurial, Connection*> burial_errand_;
  Errand<&Connection::Delete, Connection*> deletion_errand_;
  Mutex mutex_;
  ConnectionOwner* owner_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

inline void Connection::Receive(WorkRecord& record, const ibv_wc& completion) {
  record.length = completion.byte_len;
  record.opcode =
      completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? Opcode::kReceiveWrite : Opcode::kReceive;
  record.solicited = true;  // no device says which were: nobody sleeps through one
  if ((completion.wc_flags & IBV_WC_WITH_IMM) != 0) {
    record.has_immediate = true;
    record.immediate = completion.imm_data;
  } else if ((completion.wc_flags & IBV_WC_WITH_INV) != 0) {
    record.opcode = Opcode::kReceiveInvalidate;
    record.immediate = completion.invalidated_rkey;
  }
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::CompleteInTurn(Direction direction,
                                                                    const ibv_wc& completion,
                                                                    Completion* out, int* taken) {
  WorkQueue* const queue = queues_[direction];
  if (completion.status != IBV_WC_SUCCESS || queue == nullptr || !queue->straight()) return false;
  WorkRecord* const record = queue->HeadAtDevice();
  if (record == nullptr) return false;
  CountSeen(direction);
  if (direction == kReceives) Receive(*record, completion);
  if (WorkQueue::Shows(*record)) queue->Show(*record, &out[(*taken)++]);
  queue->TakeHead();
  return true;
}

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_CONNECTION_H_
