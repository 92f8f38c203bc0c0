// One connection, or one attempt to connect: librdmacm's id and the device's queue pair
// (device_pair.h). Both are buried with it, except that the id may stay to tell the peer
// (farewell.h). The queue pair of verbs/device.h exists before and afterwards.
//
// Its owner is a QueuePair, which is notified of everything, or a request that is not decided yet,
// which is notified of nothing. The owner gives it up with Bury, at once and from any thread; the
// control thread destroys it when the device has nothing left to complete.
#ifndef VIADUCT_VERBS_RDMA_CONNECTION_H_
#define VIADUCT_VERBS_RDMA_CONNECTION_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
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
    kDropped = 4,           // messages found no receive: see TakeDropped
    kRefusedWrite = 8,      // the device reports a forbidden access by the peer
  };
  virtual void OnSignals(Connection& connection, uint32_t signals) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// What a connection needs of the pair of verbs/device.h that owns it.
struct ConnectionPlace {
  WorkQueue* queues[2] = {nullptr, nullptr};  // sends and receives
  uint32_t peer_access = 0;                   // what the peer may do: Access bits
  Memory* memory = nullptr;
  std::atomic<bool>* ended = nullptr;  // if it ends by itself, set before any flush
  bool may_frame = false;              // messages may have frames: see SetFramed
};

class alignas(8) Connection final : public CmHandler, public QpHandler {
 public:
  // For a dial; makes an id. Null on failure: see `*status`.
  static Connection* ForDial(Device& device, ConnectionOwner* owner, absl::Status* status);
  static Connection* ForRequest(Device& device, rdma_cm_id* id);

  rdma_cm_id* id() const { return id_; }
  ibv_qp* pair() const { return pair_.handle(); }
  // The state that the device reports; IBV_QPS_UNKNOWN without a pair, or without a report.
  ibv_qp_state PairState() const;

  // From now on signals and events go to `owner`.
  void SetOwner(ConnectionOwner* owner);
  // Null before SetOwner, and after Bury.
  ConnectionOwner* owner();

  // Takes over the device's queue pair, whose completions belong to the work queues of `place`.
  // Fails as DevicePair::Join does, or with ResourceExhausted: no memory.
  absl::Status TakePair(DevicePair pair, const ConnectionPlace& place);
  // Lets messages arrive in memory of our own, with room for `count` of at most `bytes`, from where
  // they are copied to the oldest receive. False: no memory.
  bool ReceiveIntoBounces(int count, uint32_t bytes);
  bool bouncing() const { return !bounces_.empty(); }
  // Makes sure that Release needs no memory even if each of `requests` has a bounce. Under the
  // direction's lock. False: no memory.
  bool KeepRoomToLeave(Direction direction, uint32_t requests);

  // The receive has more segments than the device takes.
  bool NeedsBounce(const WorkRecord& record, const Segment* segments) const;

  // Receives get room for a frame: a slot of their own before their memory.
  bool may_frame() const { return !frames_[kReceives].empty() && framing() != Framing::kUnframed; }
  // Room for the frames of a direction's requests, except sends that go inline; empty if messages
  // may not have frames.
  const FrameSlots& frames(Direction direction) const { return frames_[direction]; }
  // Says whether the peer's messages have frames, if they may. Messages that arrive before this
  // call wait for it. Under the lock of the receives' completion queue.
  void SetFramed(bool framed);

  // Calls rdma_resolve_route. The outcome comes as an event: ROUTE_ERROR with an errno if the call
  // failed. Control thread, as is Connect.
  void ResolveRoute(int milliseconds);
  // Calls rdma_connect. The outcome comes as an event: ADDR_ERROR with an errno if the call failed.
  // When the peer answers, the pair is opened to it.
  void Connect(rdma_conn_param parameters, absl::Span<const uint8_t> private_data);

  // Refuses a request that nobody takes and that no program has rejected.
  void Refuse();
  // Opens the pair to the peer and calls rdma_accept. Returns 0 or an errno.
  int Accept(rdma_conn_param parameters);
  // Limits what the peer may do from now on. For a dial on iWARP, where the driver opens the pair.
  void LimitPeer();
  bool accepted() const { return accepted_; }

  // For posters, under the direction's lock: `count` requests went to the device.
  void Posted(Direction direction, int64_t count) {
    posted_[direction].store(posted_[direction].load(std::memory_order_relaxed) + count,
                             std::memory_order_relaxed);
  }
  void Unposted(Direction direction, int64_t count) { Posted(direction, -count); }
  // How many more sends the device takes, apart from a nudge.
  uint32_t SendRoom() const {
    return max_sends_ - static_cast<uint32_t>(posted_[kSends].load(std::memory_order_relaxed) -
                                              seen_[kSends].load(std::memory_order_relaxed));
  }
  uint32_t max_segments(Direction direction) const { return pair_.max_segments(direction); }
  // The most bytes of a request that go inline.
  uint32_t max_inline() const { return pair_.max_inline(); }

  // Takes a completion. Under the lock of the direction's completion queue.
  void Complete(Direction direction, const ibv_wc& completion);
  // The same for the usual case: the request has succeeded and no older one is open, so its
  // completion goes straight to `out[*taken]`. False: it is not so, and nothing has happened.
  bool CompleteInTurn(Direction direction, const ibv_wc& completion, Completion* out, int* taken);
  void CompleteNudge() { nudge_is_open_ = false; }
  // False: nobody will poll for it, because the work queue was released.
  bool CompleteShared(const SharedReceive& receive, const ibv_wc& completion);
  // The device has refused `count` parts of a request.
  void Refused(Direction direction, WorkQueue& queue, WorkRecord& record, uint32_t count);
  // A send was refused on this side: the connection ends when the sends before it are done.
  void BreakInTurn(WorkQueue& sends);
  // Asks for the signal kDrained. Under the lock of the sends' completion queue.
  void AwaitDrain(WorkQueue& sends);

  // Any thread: the owner is notified soon.
  void Signal(uint32_t signals);
  // The same for what the peer has done over the connection. If this side is not notified yet that
  // there is a connection, its owner hears of it after set_established. Control thread, or under
  // the lock of the receives' completion queue.
  void SignalOfPeer(uint32_t signals);
  // Control thread: notifies the owner now.
  void TellSignals();
  uint32_t TakeDropped() { return dropped_.exchange(0); }
  // Under the lock of the receives' completion queue. Before this call failures are not signalled,
  // and flushed requests stay posted.
  void set_established() {
    established_.store(true, std::memory_order_release);
    if (signals_ != 0) Signal(0);
  }
  // A request has failed, or reads were unanswered when the connection ended.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  void set_failed() { failed_.store(true, std::memory_order_release); }

  // Takes what the device has completed.
  void HarvestAll();
  // Called before Stop if the program ends the connection. A request that this cuts off in the
  // device counts as flushed, even if the device reports it as a failure of the connection (as siw
  // does, whose TCP connection failed).
  void Cut() { cut_ = true; }
  // Ends the connection: tells the peer if it was `established`, lets nothing be placed in memory
  // any more, and takes what the device has completed. Then Release gives the work queues back.
  void Stop(bool established);
  // Requests that the device still held: an attempt that may be repeated keeps them posted.
  enum class Unfinished : uint8_t { kKeep, kFlush };
  void Release(Direction direction, Unfinished unfinished);
  void Bury();

  // Reports an attempt's failure to the owner as if librdmacm had reported it. Once; any thread.
  void FailLater(rdma_cm_event_type type, int error);

  void OnCmEvent(const CmEvent& event) override;
  void OnQpEvent(ibv_event_type type) override;

 private:
  enum class Framing : uint8_t { kUnknown, kFramed, kUnframed };
  struct Landing {
    Bounce memory;
    bool leads = false;  // the slot of a frame precedes it
  };

  Connection(Device& device, rdma_cm_id* id) : device_(device), id_(id) {}
  ~Connection();

  // The options with which its pair was made; empty without a pair.
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
  // The device has refused a request: ends the connection unless it is over. Returns whether it
  // was.
  bool NoteRefusal();
  // These copy between a receive's memory and `from` or `to`.
  template <typename Copy>
  Status Walk(const WorkRecord& record, const Segment* segments, uint32_t length, Copy&& copy);
  Status Scatter(const WorkRecord& record, const Segment* segments, const unsigned char* from,
                 uint32_t length);
  Status Gather(const WorkRecord& record, const Segment* segments, unsigned char* to,
                uint32_t length);
  void Finish(Direction direction, WorkQueue& queue, WorkRecord& record);
  bool PostBounce(uint32_t slot);
  void CheckTurn(WorkQueue& sends);
  // If the connection was released, the control thread may destroy it after this.
  void CountSeen(Direction direction) {
    seen_[direction].store(seen_[direction].load(std::memory_order_relaxed) + 1,
                           std::memory_order_release);
  }
  // The device has yet to report that the pair has taken its last receive from the shared queue.
  bool AwaitsLastReceive() const {
    const bool received = established_ || accepted_ || connected_;
    return received && options().shared != nullptr && pair() != nullptr &&
           device_.tells_last_receive() && !has_last_receive_;
  }
  // InfiniBand and RoCE: the peer has answered a dial. Opens the pair, perhaps aside, and reports
  // what librdmacm reports for an id with a pair: ESTABLISHED, or CONNECT_ERROR with an errno.
  void Confirm(const CmEvent& answer);
  int OpenToAnswer();  // 0 or an errno
  void TellConfirmed(CmEvent answer, int error);
  // Names the pair in `parameters`, for an id that does not know it.
  void Name(rdma_conn_param* parameters) const;
  // On iWARP the peer of an accept speaks first, and until siw has heard it the kernel ends
  // nothing: a call that tries to waits for ever, and ending the pair leads to a BUG() of iw_cm.
  bool half_open() const { return device_.iwarp() && accepted_ && !heard_; }
  // Control thread, for a connection that was dialled: sends a nudge later. It is done twice.
  void NudgeLater();
  void Nudge();
  bool OwesNudge();
  // The peer may not have the answers yet to what was received here.
  bool OwesAnswers() const;
  void TellFailure();
  void Report(rdma_cm_event_type type, int error);
  // Control thread. Makes a call of librdmacm for id_, aside (aside.h) if it waits for anybody. An
  // errno that the call returns is reported as an event of the type `failure`.
  void Dial(rdma_cm_event_type failure, bool waits, std::function<int()> call);
  void MakeDial();  // makes that call, perhaps aside
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
  std::vector<ibv_wc> early_;  // messages from before framing_ was known; under the receives' lock
  std::vector<Landing> bounces_;
  uint32_t next_bounce_ = 0;
  std::vector<Bounce> left_[2];  // of requests that the device was not done with
  // Each under the lock of its completion queue; null when released.
  WorkQueue* queues_[2] = {nullptr, nullptr};
  std::atomic<uint64_t> posted_[2] = {};
  std::atomic<uint64_t> seen_[2] = {};
  uint32_t max_sends_ = 0;      // sends of the program that the device takes
  bool nudge_is_open_ = false;  // the device has it; under the lock of the sends' queue
  std::atomic<uint32_t> signals_{0};
  std::atomic<uint32_t> dropped_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> established_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> cut_{false};
  bool dialing_ = false;    // control thread: a call of Dial is under way
  bool has_route_ = false;  // control thread: the route was found during that call
  bool dialled_ = false;    // rdma_connect was called
  Nanos dialled_at_ = 0;
  // Control thread: the call of Dial under way opens the pair to this answer, and what has come
  // since.
  std::optional<CmEvent> answer_;
  std::vector<CmEvent> behind_answer_;
  bool buried_ = false;                 // control thread: destroyed when nothing goes on any more
  std::atomic<bool> connected_{false};  // by the last event that is not IsOfTheWay
  std::atomic<bool> accepted_{false};
  std::atomic<bool> heard_{false};     // an event came that is not IsOfTheWay
  bool unstopped_ = false;             // it was half open when Stop was called
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
  record.solicited = true;  // no device says which were, so all are: nobody sleeps through one
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
