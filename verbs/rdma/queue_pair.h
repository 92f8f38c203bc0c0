// The queue pair of verbs/device.h: its states and work queues. What the device has of it is a
// DevicePair, of which each connection has its own: a Connection, made for each attempt.
//
// Locks, in this order: mutex_ (states), send_lock_, receive_lock_ (posting), the locks of the
// completion queues, Memory's. None is held while a sink is called.
#ifndef VIADUCT_VERBS_RDMA_QUEUE_PAIR_H_
#define VIADUCT_VERBS_RDMA_QUEUE_PAIR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/rdma/connection.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/device_pair.h"
#include "verbs/rdma/memory.h"
#include "verbs/rdma/work_queue.h"

namespace viaduct::verbs::rdma {

inline uint64_t TotalLength(absl::Span<const Segment> segments) {
  uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

class RdmaQueuePair final : public QueuePair, public ConnectionOwner {
 public:
  // What is asked of `options` was checked. ResourceExhausted: there is no memory, or the device
  // has not another pair.
  static absl::StatusOr<std::unique_ptr<RdmaQueuePair>> Make(Device& device, Memory& memory,
                                                             const Address& address,
                                                             const QueuePairOptions& options);
  ~RdmaQueuePair() override;

  PostResult PostSend(const SendRequest& request) override;
  PostResult PostAtomic(const AtomicRequest& request) override;
  PostResult PostBind(const BindRequest& request, Key* key) override;
  PostResult PostReceive(const ReceiveRequest& request) override;
  absl::Status Modify(const QueuePairOptions& options) override;
  absl::Status Connect(const ConnectOptions& options) override;
  bool Heard() const override { return heard_.load(std::memory_order_relaxed); }
  uint16_t local_port() const override { return local_port_.load(std::memory_order_relaxed); }
  void EnableImmediate(ImmediateForm form) override;
  std::optional<ConfirmationWord> confirmation_word() override;
  void ConfirmBy(const std::optional<ConfirmationWord>& word) override;
  void Disconnect(DisconnectMode mode) override;
  void Flush() override;
  void Reset() override;
  bool Ended() const override { return ended_.load(std::memory_order_acquire); }
  bool SendIdle() const override { return sends_.open() == 0; }
  uint32_t open_receives() const override { return receives_.open(); }

  // Of IncomingConnection::Accept: `connection`, whose request asked for these, becomes this
  // pair's. FailedPrecondition: it is the caller's still. ResourceExhausted: it was refused.
  absl::Status Accept(Connection& connection, uint8_t responder_resources, uint8_t initiator_depth,
                      absl::Span<const uint8_t> private_data);

  void OnConnectionEvent(Connection& connection, const CmEvent& event) override;
  void OnSignals(Connection& connection, uint32_t signals) override;

 private:
  enum class State { kIdle, kConnecting, kConnected, kClosing, kError };

  RdmaQueuePair(Device& device, Memory& memory, const Address& address)
      : device_(device), memory_(memory), address_(address) {}

  // Takes options over, and has the device's pair for them; otherwise everything is as before.
  absl::Status Configure(const QueuePairOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The posters' part of that. False: no memory.
  bool TakeOver(const QueuePairOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PairOptions DeviceOptions(const QueuePairOptions& options) const;
  // Gives the connection the device's pair, and that the receives. `may_frame`: messages may have
  // frames.
  absl::Status Prepare(Connection& connection, bool may_frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ImmediateForm immediate_form();
  // Begins an attempt to reach peer_.
  void Dial(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks where peer_ is. False: errno says why not.
  bool Resolve(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ResolveAgain(Connection& connection);
  // Begins the attempt of that connection anew. False: it has been tried often enough, or is over.
  bool DialAgain(Connection& connection);
  void EndResolution(const Connection& connection);
  // Of the attempt whose connection that is, if it is still under way.
  void SetHeard(const Connection& connection, bool heard);
  rdma_conn_param Parameters() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the connection up; the state afterwards is `next`.
  void DropConnection(State next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CompletionCore& core(Direction direction) const { return *cores_[direction]; }

  // Nothing was cut since cuts_ was that: the sink may hear what was found out then.
  bool MayTell(uint32_t cuts) const { return cuts_.load(std::memory_order_acquire) == cuts; }

  // Control thread, mutex_ not held. Each ends with at most one sink call, Disconnected with two;
  // behind one nothing of this object is touched unless it is still the connection's owner.
  void Fail(Connection& connection, ConnectOutcome outcome, absl::Span<const uint8_t> data);
  void LogFailure(ConnectOutcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailBy(Connection& connection, const CmEvent& event);
  void End(Connection& connection, DisconnectCause cause);
  void Established(Connection& connection, const CmEvent& event);
  // Over InfiniBand's CM only an end that has had the connection disconnects: if its word of that
  // was lost, this is it.
  void Disconnected(Connection& connection, const CmEvent& event);
  void Rejected(Connection& connection, const CmEvent& event);
  void Route(Connection& connection);
  DisconnectCause CauseOf(Connection& connection);

  // Posting; the direction's lock held.
  // The usual request, in the prebuilt form. False: it is not one, or something is in its way.
  bool PostPlain(const SendRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  bool PostPlain(const ReceiveRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // Any other.
  PostResult PostGeneral(const SendRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostGeneral(const ReceiveRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  PostResult PostDone(WorkQueue& queue, Direction direction, const WorkRecord& blank,
                      Status status);
  PostResult RefuseSend(const WorkRecord& blank, Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostWhole(ibv_send_wr& work, const WorkRecord& blank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // `lead` segments are there already.
  PostResult PostGathered(ibv_send_wr& work, const SendRequest& request, const WorkRecord& blank,
                          uint32_t lead, uint32_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostSplit(ibv_send_wr& work, const WorkRecord& blank, uint32_t most)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // What goes behind a request: the frame of a write's immediate data, the read that confirms.
  struct Tail {
    ibv_send_wr value = {};
    ibv_send_wr confirmation = {};
    ibv_sge frame = {};
    ibv_sge word = {};
  };
  // Links it to `last`. How many there are; null: as PlaceFrame.
  std::optional<uint32_t> Follow(ibv_send_wr& last, const WorkRecord& blank, Tail* tail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Makes a read one of the peer's confirmation word, of no bytes if it has told none.
  void AskForWord(ibv_send_wr* read, ibv_sge* sink) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // As ibv_post_send, on the connection, and never cancelled.
  int PostToDevice(ibv_send_wr* first, ibv_send_wr** bad) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // What goes to the device, but for the number of its segments. `immediate`: the device carries
  // it.
  ibv_send_wr WorkOf(const SendRequest& request, bool immediate)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The request's segments but for the empty ones in the device's form, behind *count others.
  // False: one has not the rights.
  bool TranslateSegments(const SendRequest& request, uint32_t* count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The processor finds them where their addresses say: not those of a region that counts from 0.
  bool LiesThere(absl::Span<const Segment> segments) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Puts a frame of the next request where the device finds it. False: there is no such place,
  // since only the peer spoke of frames.
  bool PlaceFrame(const Frame& frame, bool inlined, ibv_sge* segment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // A write's immediate data travels in a message of its own.
  bool NeedsFrameBehind(const WorkRecord& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_) {
    return record.opcode == Opcode::kWrite && (record.flags & kImmediate) != 0 &&
           immediate_form_ == ImmediateForm::kFramed;
  }
  // What memory_ has prepared.
  PostResult PostBound(Memory::BindStep step, const BindRequest& request, const WorkRecord& blank,
                       Key* key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // A device's window, bound in its turn.
  PostResult PostBindToDevice(const BindRequest& request, const WorkRecord& blank, Key* key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The record of what goes to the device now as `count` requests.
  WorkRecord& Begin(uint32_t count, const WorkRecord& blank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostChain(ibv_send_wr* first, uint32_t count, const WorkRecord& blank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The device has refused the chain from `bad` on, which is the record's, and so are `unposted`
  // others that it was not asked to take any more.
  void RefusedByDevice(WorkRecord& record, const ibv_send_wr* bad, uint32_t unposted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void RefusedByDevice(WorkRecord& record, uint32_t refused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Of the device, beside those for which it was promised.
  bool HasRoomFor(uint32_t requests) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  uint32_t MostSegments(Opcode opcode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // With more segments than the device takes it becomes several requests. Not a write with
  // immediate data, of which the device tells the receiver the last one's length, unless that has
  // to wait for reads, which bring its bytes.
  bool IsSplit(const SendRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // A read is posted that has not brought its bytes yet.
  bool AwaitsRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // How many requests of the device it becomes.
  uint32_t PartsOf(const SendRequest& request, const WorkRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void PreparePlain(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Behind every change of sending_, stopped_ and immediate_form_.
  void SetPlainOpcodes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void PreparePlainReceive(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // Of a receive with more segments than the device takes; false: there is no memory.
  bool TakeBounce(Connection& connection, WorkRecord& record, const Segment* segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // False: the device has refused it.
  bool PostReceiveToDevice(Connection& connection, WorkRecord& record, const Segment* segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // Then, of one that was not posted before the connection began.
  void RefusedByDevice(Connection& connection, WorkRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  bool drops() const { return no_receive_ == NoReceive::kDrop && shared_ == nullptr; }
  // The device reports no verdict: a read behind the request brings it.
  bool NeedsConfirmation(const WorkRecord& record) const {
    return (record.flags & kConfirm) != 0 && record.opcode != Opcode::kRead && device_.iwarp();
  }

  Device& device_;
  Memory& memory_;
  const Address address_;
  ConnectionSink* sink_ = nullptr;
  std::shared_ptr<DomainCore> domain_;
  std::shared_ptr<CompletionCore> cores_[2];
  std::shared_ptr<SharedReceiveCore> shared_;
  // Change in Idle, under both posting locks.
  NoReceive no_receive_ = NoReceive::kHold;
  uint32_t max_send_segments_ = 1;
  uint32_t max_receive_segments_ = 1;

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  QueuePairOptions options_ ABSL_GUARDED_BY(mutex_);
  PairOptions pair_options_ ABSL_GUARDED_BY(mutex_);  // options_ in the device's words
  // The next connection's. Empty: it is made when the route is known.
  DevicePair next_pair_ ABSL_GUARDED_BY(mutex_);
  Connection* connection_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Counts Disconnect(kAbrupt), behind which nothing is told any more of what was before. Changes
  // under mutex_.
  std::atomic<uint32_t> cuts_{0};
  Address peer_ ABSL_GUARDED_BY(mutex_);  // of a dial
  uint16_t peer_port_ ABSL_GUARDED_BY(mutex_) = 0;
  int tries_left_ ABSL_GUARDED_BY(mutex_) = 0;      // to resolve it
  int dials_left_ ABSL_GUARDED_BY(mutex_) = 0;      // of a dial, where the peer has a stale one
  std::string question_ ABSL_GUARDED_BY(mutex_);    // its private data
  bool may_frame_ ABSL_GUARDED_BY(mutex_) = false;  // what it said of the answer
  bool dialled_ ABSL_GUARDED_BY(mutex_) = false;

  SpinLock send_lock_;
  SpinLock receive_lock_;
  WorkQueue sends_;
  WorkQueue receives_;
  Connection* sending_ ABSL_GUARDED_BY(send_lock_) = nullptr;  // Connected
  bool stopped_ ABSL_GUARDED_BY(send_lock_) = false;           // a request has failed here
  ImmediateForm immediate_form_ ABSL_GUARDED_BY(send_lock_) = ImmediateForm::kNone;
  // What that read asks for, and where it goes. Zeros: no bytes.
  ConfirmationWord confirm_by_ ABSL_GUARDED_BY(send_lock_);
  ibv_sge confirm_to_ ABSL_GUARDED_BY(send_lock_) = {};
  std::array<uint8_t, kFrameBytes> inline_frame_ ABSL_GUARDED_BY(send_lock_) = {};
  // The segments of the request that is being posted, and their form for the device, behind one for
  // a frame.
  std::vector<Segment> kept_segments_ ABSL_GUARDED_BY(send_lock_);
  std::vector<ibv_sge> send_segments_ ABSL_GUARDED_BY(send_lock_);
  RegionCache send_region_ ABSL_GUARDED_BY(send_lock_);
  // Prebuilt while Connected, for PostPlain: the opcodes that may go so, a bit for each and none
  // unless Connected; the flags that may not; how long a message may be, and may be to go inline.
  ibv_send_wr plain_ ABSL_GUARDED_BY(send_lock_) = {};
  ibv_sge plain_segment_ ABSL_GUARDED_BY(send_lock_) = {};
  uint8_t plain_opcodes_ ABSL_GUARDED_BY(send_lock_) = 0;
  uint16_t special_flags_ ABSL_GUARDED_BY(send_lock_) = 0;
  uint32_t plain_bytes_ ABSL_GUARDED_BY(send_lock_) = 0;
  uint32_t plain_inline_ ABSL_GUARDED_BY(send_lock_) = 0;
  Connection* receiving_ ABSL_GUARDED_BY(receive_lock_) = nullptr;
  bool flushing_ ABSL_GUARDED_BY(receive_lock_) = false;  // Error
  std::vector<ibv_sge> receive_segments_ ABSL_GUARDED_BY(receive_lock_);
  RegionCache receive_region_ ABSL_GUARDED_BY(receive_lock_);
  // As plain_, of receiving_; false: none goes so.
  bool plain_receives_ ABSL_GUARDED_BY(receive_lock_) = false;
  ibv_recv_wr plain_receive_ ABSL_GUARDED_BY(receive_lock_) = {};
  ibv_sge plain_receive_segment_ ABSL_GUARDED_BY(receive_lock_) = {};

  std::atomic<bool> heard_{false};
  std::atomic<uint16_t> local_port_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_QUEUE_PAIR_H_
