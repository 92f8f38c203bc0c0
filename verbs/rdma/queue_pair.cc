// Begin and end of a queue pair, and the end of its connections by this side.
#include "verbs/rdma/queue_pair.h"

#include <algorithm>
#include <utility>

#include "verbs/rdma/patience.h"
#include "verbs/rdma/shared_receive_queue.h"

namespace viaduct::verbs::rdma {
namespace {

// Requests rarely have more parts or segments than this, and a device may set aside memory for the
// maximum of each: with all that VIPL promises a pair of rxe has four megabytes.
constexpr uint32_t kUsualParts = 4;
constexpr uint32_t kUsualSegments = 16;

}  // namespace

absl::StatusOr<std::unique_ptr<RdmaQueuePair>> RdmaQueuePair::Make(
    Device& device, Memory& memory, const Address& address, const QueuePairOptions& options) {
  std::unique_ptr<RdmaQueuePair> pair(new RdmaQueuePair(device, memory, address));
  pair->cores_[kSends] = static_cast<RdmaCompletionQueue*>(options.send_queue)->core();
  pair->cores_[kReceives] = static_cast<RdmaCompletionQueue*>(options.receive_queue)->core();
  if (options.shared_receives != nullptr) {
    pair->shared_ = static_cast<RdmaSharedReceiveQueue*>(options.shared_receives)->core();
    pair->receives_.outstanding = &pair->shared_->outstanding();
  }
  pair->sink_ = options.sink;
  pair->sends_.context = pair->receives_.context = options.context;
  MutexLock lock(&pair->mutex_);
  const absl::Status status = pair->Configure(options);
  if (!status.ok()) return status;
  return pair;
}

absl::Status RdmaQueuePair::Configure(const QueuePairOptions& options) {
  QueuePairOptions kept = options;
  kept.max_sends = std::max(kept.max_sends, options_.max_sends);
  kept.max_receives = std::max(kept.max_receives, options_.max_receives);
  kept.max_send_segments = std::max(kept.max_send_segments, max_send_segments_);
  kept.max_receive_segments = std::max(kept.max_receive_segments, max_receive_segments_);
  const PairOptions wanted = DeviceOptions(kept);
  // Made while no poster waits for it, and only if a pair is held now: later pairs are made when
  // they are needed.
  const bool first = domain_ == nullptr;
  DevicePair made;
  if (first || (next_pair_.handle() != nullptr && next_pair_.options() != wanted)) {
    absl::StatusOr<DevicePair> pair = DevicePair::Make(device_, wanted);
    if (!pair.ok()) return pair.status();
    made = *std::move(pair);
  }
  if (!TakeOver(kept)) return absl::ResourceExhaustedError("no memory");
  options_ = kept;
  pair_options_ = wanted;
  if (made.handle() != nullptr) next_pair_ = std::move(made);
  return absl::OkStatus();
}

bool RdmaQueuePair::TakeOver(const QueuePairOptions& options) {
  SpinLockHolder send_guard(&send_lock_);
  SpinLockHolder receive_guard(&receive_lock_);
  const uint32_t receives =
      shared_ != nullptr ? shared_->depth() : std::max(options.max_receives, 1u);
  {
    PassLockHolder guard(&core(kSends).lock);
    if (!sends_.Resize(options.max_sends, 0)) return false;
  }
  {
    PassLockHolder guard(&core(kReceives).lock);
    if (!receives_.Resize(receives, shared_ != nullptr ? 0 : options.max_receive_segments)) {
      return false;
    }
  }
  // All that needs memory comes first, so that a pair is never between two domains.
  kept_segments_.resize(options.max_send_segments);
  send_segments_.resize(1 + std::max(options.max_send_segments, 1u));
  receive_segments_.resize(1 + std::max(options.max_receive_segments, 1u));
  max_send_segments_ = options.max_send_segments;
  max_receive_segments_ = options.max_receive_segments;
  domain_ = static_cast<Domain*>(options.domain)->core();
  no_receive_ = options.no_receive;
  return true;
}

// On iWARP some connections may have frames; for the others the room does no harm.
PairOptions RdmaQueuePair::DeviceOptions(const QueuePairOptions& options) const {
  const bool frames = device_.iwarp() && shared_ == nullptr;
  const bool drops = options.no_receive == NoReceive::kDrop && shared_ == nullptr;
  PairOptions wanted;
  wanted.domain = static_cast<Domain*>(options.domain)->core();
  for (int i = 0; i < 2; ++i) wanted.queues[i] = cores_[i];
  wanted.shared = shared_;
  const uint32_t lead = frames ? 1 : 0;
  wanted.max_segments[kSends] = std::min(options.max_send_segments, kUsualSegments) + lead;
  wanted.max_segments[kReceives] = std::min(options.max_receive_segments, kUsualSegments) + lead;
  // A read has the most parts: on iWARP one for each segment, elsewhere perhaps one for a few. On
  // iWARP a confirmed request has one part more, and so has a write with immediate data.
  const uint32_t segments = std::max(options.max_send_segments, 1u);
  const uint32_t most_at_once = std::min(device_.max_read_segments(), kFewSegments);
  const uint32_t most_parts =
      (segments + most_at_once - 1) / most_at_once + (device_.iwarp() ? 1 : 0) + (frames ? 1 : 0);
  // One request with all its parts must fit in any case.
  const uint32_t usual_parts = device_.iwarp() ? std::min(most_parts, kUsualParts) : 1;
  const uint32_t sends = std::max(std::max(options.max_sends, 1u) * usual_parts, most_parts);
  wanted.max_requests[kSends] = sends + NudgeRoom(device_);
  wanted.max_requests[kReceives] = drops ? kDropBounces : std::max(options.max_receives, 1u);
  return wanted;
}

RdmaQueuePair::~RdmaQueuePair() {
  {
    MutexLock lock(&mutex_);
    if (connection_ != nullptr) DropConnection(State::kError);
  }
  // Without a domain Make has given it up: nobody has got it, and no sink was called.
  if (domain_ != nullptr && !device_.loop().OnExecutor()) device_.loop().Drain();
  for (Direction direction : {kSends, kReceives}) {
    PassLockHolder guard(&core(direction).lock);
    WorkQueue& queue = direction == kSends ? sends_ : receives_;
    core(direction).Unlist(queue);
    if (queue.outstanding != nullptr) queue.outstanding->fetch_sub(queue.tail() - queue.head());
  }
}

absl::Status RdmaQueuePair::Modify(const QueuePairOptions& options) {
  MutexLock lock(&mutex_);
  if (state_ != State::kIdle) return absl::FailedPreconditionError("not idle");
  return Configure(options);
}

// ------------------------------------------------------------------------------------------ end

void RdmaQueuePair::DropConnection(State next) {
  Connection* const connection = connection_;
  const bool established = state_ == State::kConnected || state_ == State::kClosing ||
                           (state_ == State::kConnecting && !dialled_);
  connection_ = nullptr;
  state_ = next;
  {
    SpinLockHolder send_guard(&send_lock_);
    SpinLockHolder receive_guard(&receive_lock_);
    sending_ = nullptr;
    immediate_form_ = ImmediateForm::kNone;
    confirm_by_ = {};
    confirm_to_ = {};
    SetPlainOpcodes();
    receiving_ = nullptr;
    plain_receives_ = false;
    flushing_ = next == State::kError;
  }
  connection->SetOwner(nullptr);
  if (next == State::kIdle) {
    for (Direction direction : {kSends, kReceives}) {
      connection->Release(direction, Connection::Unfinished::kKeep);
    }
  }
  connection->Stop(established);
  if (connection->pair() != nullptr) memory_.EndWindowsOf(connection->pair());
  for (Direction direction : {kSends, kReceives}) {
    connection->Release(direction, Connection::Unfinished::kFlush);
  }
  if (next == State::kError) FlushAll();
  connection->Bury();
}

// Flushes the receives that no device has.
void RdmaQueuePair::FlushAll() {
  {
    PassLockHolder guard(&core(kReceives).lock);
    receives_.Clear(WorkQueue::kGated);
    for (WorkRecord* record; (record = receives_.OldestOpen()) != nullptr;) {
      receives_.Done(*record, Status::kFlushed);
    }
    if (receives_.HasNews()) core(kReceives).List(kReceives, receives_);
  }
  core(kReceives).Notify();
}

void RdmaQueuePair::Disconnect(DisconnectMode mode) {
  MutexLock lock(&mutex_);
  if (mode == DisconnectMode::kAbrupt) cuts_.fetch_add(1, std::memory_order_release);
  if (state_ == State::kConnecting) {
    DropConnection(State::kIdle);
  } else if (state_ == State::kConnected || state_ == State::kClosing) {
    if (mode == DisconnectMode::kAbrupt) {
      connection_->Cut();
      DropConnection(State::kError);
    } else if (state_ == State::kConnected) {
      state_ = State::kClosing;
      {
        SpinLockHolder guard(&send_lock_);
        sending_ = nullptr;
        SetPlainOpcodes();
        PassLockHolder queue_guard(&core(kSends).lock);
        connection_->AwaitDrain(sends_);
      }
      core(kSends).TendSoon();  // perhaps nobody polls any more
    }
  }
}

void RdmaQueuePair::Flush() {
  MutexLock lock(&mutex_);
  if (state_ != State::kIdle && state_ != State::kError) return;
  state_ = State::kError;
  {
    SpinLockHolder guard(&receive_lock_);
    flushing_ = true;
  }
  FlushAll();
}

void RdmaQueuePair::Reset() {
  MutexLock lock(&mutex_);
  if (state_ != State::kError) return;
  state_ = State::kIdle;
  ended_ = false;
  local_port_ = 0;
  SpinLockHolder guard(&receive_lock_);
  flushing_ = false;
}

}  // namespace viaduct::verbs::rdma
