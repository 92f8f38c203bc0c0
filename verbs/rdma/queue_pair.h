// The queue pair of verbs/device.h: its states and work queues. Each attempt to connect has a
// Connection of its own, and that a DevicePair, which is the device's queue pair.
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
  // The limits in `options` were checked before. ResourceExhausted: there is no memory, or the
  // device has no more pairs.
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

  // For IncomingConnection::Accept: takes over `connection`, whose request asked for these reads.
  // FailedPrecondition: it is still the caller's. ResourceExhausted: it was refused.
  absl::Status Accept(Connection& connection, uint8_t responder_resources, uint8_t initiator_depth,
                      absl::Span<const uint8_t> private_data);

  void OnConnectionEvent(Connection& connection, const CmEvent& event) override;
  void OnSignals(Connection& connection, uint32_t signals) override;

 private:
  enum class State { kIdle, kConnecting, kConnected, kClosing, kError };

  RdmaQueuePair(Device& device, Memory& memory, const Address& address)
      : device_(device), memory_(memory), address_(address) {}

  // Adopts the options and has the device's pair for them. On failure everything is as before.
  absl::Status Configure(const QueuePairOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adopts those of the options that posters use. False: no memory.
  bool TakeOver(const QueuePairOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PairOptions DeviceOptions(const QueuePairOptions& options) const;
  // Gives the device's pair to the connection, and the posted receives to that pair. `may_frame`:
  // messages may have frames.
  absl::Status Prepare(Connection& connection, bool may_frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ImmediateForm immediate_form();
  // Begins an attempt to reach peer_.
  void Dial(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts to resolve the address of peer_. False: errno says why not.
  bool Resolve(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ResolveAgain(Connection& connection);
  // Begins the attempt of that connection anew. False: it was tried often enough, or is over.
  bool DialAgain(Connection& connection);
  void EndResolution(const Connection& connection);
  // Sets heard_, if `connection` is still the current one.
  void SetHeard(const Connection& connection, bool heard);
  rdma_conn_param Parameters() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives up the connection; the state becomes `next`.
  void DropConnection(State next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CompletionCore& core(Direction direction) const { return *cores_[direction]; }

  // No abrupt disconnect came since cuts_ was `cuts`: the sink may be told what was found out then.
  bool MayTell(uint32_t cuts) const { return cuts_.load(std::memory_order_acquire) == cuts; }

  // Control thread, mutex_ not held. Each ends with at most one sink call, Disconnected with two.
  // After a sink call nothing of this object is touched unless it still owns the connection.
  void Fail(Connection& connection, ConnectOutcome outcome, absl::Span<const uint8_t> data);
  void LogFailure(ConnectOutcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailBy(Connection& connection, const CmEvent& event);
  void End(Connection& connection, DisconnectCause cause);
  void Established(Connection& connection, const CmEvent& event);
  // Over InfiniBand's CM only an end that was connected disconnects. If its message that it is
  // connected was lost, the disconnect takes the place of that message.
  void Disconnected(Connection& connection, const CmEvent& event);
  void Rejected(Connection& connection, const CmEvent& event);
  void Route(Connection& connection);
  DisconnectCause CauseOf(Connection& connection);

  // Posting, with the direction's lock held.
  // Posts a usual request in the prebuilt form. False: it is not one, or something is in its way.
  bool PostPlain(const SendRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  bool PostPlain(const ReceiveRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // Posts any other request.
  PostResult PostGeneral(const SendRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostGeneral(const ReceiveRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  PostResult PostDone(WorkQueue& queue, Direction direction, const WorkRecord& blank,
                      Status status);
  PostResult RefuseSend(const WorkRecord& blank, Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostWhole(ibv_send_wr& work, const WorkRecord& blank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // `lead` segments are in send_segments_ already.
  PostResult PostGathered(ibv_send_wr& work, const SendRequest& request, const WorkRecord& blank,
                          uint32_t lead, uint32_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostSplit(ibv_send_wr& work, const WorkRecord& blank, uint32_t most)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // What follows a request: the frame of a write's immediate data, and the read that confirms.
  struct Tail {
    ibv_send_wr value = {};
    ibv_send_wr confirmation = {};
    ibv_sge frame = {};
    ibv_sge word = {};
  };
  // Links the tail to `last`. Returns how many requests it has; null where PlaceFrame fails.
  std::optional<uint32_t> Follow(ibv_send_wr& last, const WorkRecord& blank, Tail* tail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Makes `read` one of the peer's confirmation word, or of no bytes if the peer has told none.
  void AskForWord(ibv_send_wr* read, ibv_sge* sink) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // As ibv_post_send, on the connection's pair, but not a cancellation point.
  int PostToDevice(ibv_send_wr* first, ibv_send_wr** bad) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The request in the device's form, without the number of segments. `immediate`: the device
  // carries the immediate data.
  ibv_send_wr WorkOf(const SendRequest& request, bool immediate)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Puts the request's segments, except empty ones, in the device's form after *count others in
  // send_segments_. False: a segment does not have the rights.
  bool TranslateSegments(const SendRequest& request, uint32_t* count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The segments lie in memory where their addresses say; not so in a region that counts from 0.
  bool LiesThere(absl::Span<const Segment> segments) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Puts a frame of the next request where the device finds it. False: there is no room, because
  // only the peer spoke of frames.
  bool PlaceFrame(const Frame& frame, bool inlined, ibv_sge* segment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // A write's immediate data travels in a message of its own.
  bool NeedsFrameBehind(const WorkRecord& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_) {
    return record.opcode == Opcode::kWrite && (record.flags & kImmediate) != 0 &&
           immediate_form_ == ImmediateForm::kFramed;
  }
  // Posts a bind that memory_ has prepared.
  PostResult PostBound(Memory::BindStep step, const BindRequest& request, const WorkRecord& blank,
                       Key* key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Posts the bind of a device's window, which is bound in its turn.
  PostResult PostBindToDevice(const BindRequest& request, const WorkRecord& blank, Key* key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Publishes the record of a request that goes to the device now as `count` requests.
  WorkRecord& Begin(uint32_t count, const WorkRecord& blank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  PostResult PostChain(ibv_send_wr* first, uint32_t count, const WorkRecord& blank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The device has refused the record's chain from `bad` on. The record has `unposted` other
  // requests that were not given to the device any more.
  void RefusedByDevice(WorkRecord& record, const ibv_send_wr* bad, uint32_t unposted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void RefusedByDevice(WorkRecord& record, uint32_t refused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // The device has room for so many requests, beside those for which places are kept.
  bool DeviceHasRoomFor(uint32_t requests) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // There is a free place for a request that becomes so many of the device, if it gets there.
  bool HasRoomFor(uint32_t requests) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // As HasRoomFor; if there is none, takes what the device has completed, and frees the places of
  // suppressed requests that have succeeded: for their sake no program polls.
  bool FindRoomFor(uint32_t requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  uint32_t MostSegments(Opcode opcode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // With more segments than the device takes it becomes several requests. A write whose immediate
  // data the device carries does not, because the receiver is told only the length of the last one,
  // unless it has a fence, and so may wait for reads that bring its bytes.
  bool IsSplit(const SendRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // A read is posted that has not brought its bytes yet.
  bool AwaitsRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // How many requests of the device the request becomes.
  uint32_t PartsOf(const SendRequest& request, const WorkRecord& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void PreparePlain(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  // Called after every change of sending_, stopped_ and immediate_form_.
  void SetPlainOpcodes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_);
  void PreparePlainReceive(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // Takes a bounce for a receive of more segments than the device takes. False: there is no memory.
  bool TakeBounce(Connection& connection, WorkRecord& record, const Segment* segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // False: the device has refused the receive.
  bool PostReceiveToDevice(Connection& connection, WorkRecord& record, const Segment* segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  // Handles that refusal, for a receive that was not posted before the connection began.
  void RefusedByDevice(Connection& connection, WorkRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_lock_);
  bool drops() const { return no_receive_ == NoReceive::kDrop && shared_ == nullptr; }
  // The device itself reports no verdict, so a read behind the request must bring it.
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
  // These change only in Idle, under both posting locks.
  NoReceive no_receive_ = NoReceive::kHold;
  uint32_t max_send_segments_ = 1;
  uint32_t max_receive_segments_ = 1;

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  QueuePairOptions options_ ABSL_GUARDED_BY(mutex_);
  PairOptions pair_options_ ABSL_GUARDED_BY(mutex_);  // options_ in the device's terms
  // The pair of the next connection. Empty: it is made when the route is known.
  DevicePair next_pair_ ABSL_GUARDED_BY(mutex_);
  Connection* connection_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Counts calls of Disconnect(kAbrupt), after which the sink is not told any more of what happened
  // before. Changes under mutex_.
  std::atomic<uint32_t> cuts_{0};
  Address peer_ ABSL_GUARDED_BY(mutex_);  // of a dial
  uint16_t peer_port_ ABSL_GUARDED_BY(mutex_) = 0;
  int tries_left_ ABSL_GUARDED_BY(mutex_) = 0;      // to resolve peer_
  int dials_left_ ABSL_GUARDED_BY(mutex_) = 0;      // if the peer has a stale connection
  std::string question_ ABSL_GUARDED_BY(mutex_);    // the dial's private data
  bool may_frame_ ABSL_GUARDED_BY(mutex_) = false;  // ConnectOptions::may_frame
  bool dialled_ ABSL_GUARDED_BY(mutex_) = false;

  SpinLock send_lock_;
  SpinLock receive_lock_;
  WorkQueue sends_;
  WorkQueue receives_;
  Connection* sending_ ABSL_GUARDED_BY(send_lock_) = nullptr;  // set while Connected
  bool stopped_ ABSL_GUARDED_BY(send_lock_) =
      false;  // a request was refused, here or by the device
  ImmediateForm immediate_form_ ABSL_GUARDED_BY(send_lock_) = ImmediateForm::kNone;
  // What a confirming read asks for, and where its data goes. Zeros: no bytes.
  ConfirmationWord confirm_by_ ABSL_GUARDED_BY(send_lock_);
  ibv_sge confirm_to_ ABSL_GUARDED_BY(send_lock_) = {};
  std::array<uint8_t, kFrameBytes> inline_frame_ ABSL_GUARDED_BY(send_lock_) = {};
  // The segments of the request that is being posted, and their form for the device, after one for
  // a frame.
  std::vector<Segment> kept_segments_ ABSL_GUARDED_BY(send_lock_);
  std::vector<ibv_sge> send_segments_ ABSL_GUARDED_BY(send_lock_);
  RegionCache send_region_ ABSL_GUARDED_BY(send_lock_);
  // Prebuilt while Connected, for PostPlain. In this order: the request, its segment, a bit for
  // each opcode that may go this way (none unless Connected), the flags that may not, the greatest
  // length of a message, and that of an inline one.
  ibv_send_wr plain_ ABSL_GUARDED_BY(send_lock_) = {};
  ibv_sge plain_segment_ ABSL_GUARDED_BY(send_lock_) = {};
  uint8_t plain_opcodes_ ABSL_GUARDED_BY(send_lock_) = 0;
  uint16_t special_flags_ ABSL_GUARDED_BY(send_lock_) = 0;
  uint32_t plain_bytes_ ABSL_GUARDED_BY(send_lock_) = 0;
  uint32_t plain_inline_ ABSL_GUARDED_BY(send_lock_) = 0;
  Connection* receiving_ ABSL_GUARDED_BY(receive_lock_) = nullptr;
  bool flushing_ ABSL_GUARDED_BY(receive_lock_) = false;  // in the state Error
  std::vector<ibv_sge> receive_segments_ ABSL_GUARDED_BY(receive_lock_);
  RegionCache receive_region_ ABSL_GUARDED_BY(receive_lock_);
  // As plain_, for receiving_. plain_receives_ is false if no receive may go this way.
  bool plain_receives_ ABSL_GUARDED_BY(receive_lock_) = false;
  ibv_recv_wr plain_receive_ ABSL_GUARDED_BY(receive_lock_) = {};
  ibv_sge plain_receive_segment_ ABSL_GUARDED_BY(receive_lock_) = {};

  std::atomic<bool> heard_{false};
  std::atomic<uint16_t> local_port_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_QUEUE_PAIR_H_
