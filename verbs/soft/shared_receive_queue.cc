#include "verbs/soft/shared_receive_queue.h"

#include <algorithm>
#include <new>

#include "verbs/soft/context.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {

absl::StatusOr<std::unique_ptr<SoftSharedReceiveQueue>> SoftSharedReceiveQueue::Create(
    SoftContext& context, const SharedReceiveOptions& options) {
  const DeviceAttributes& limits = context.attributes();
  if (options.domain == nullptr || options.max_receives > limits.max_requests_per_queue ||
      options.max_segments > limits.max_segments) {
    return absl::InvalidArgumentError("no domain, or above the device's limits");
  }
  std::unique_ptr<SoftSharedReceiveQueue> queue(new SoftSharedReceiveQueue(context, options));
  if (!queue->receives_.Allow(options.max_receives, options.max_segments)) {
    return absl::ResourceExhaustedError("no memory for the queue");
  }
  return queue;
}

SoftSharedReceiveQueue::SoftSharedReceiveQueue(SoftContext& context,
                                               const SharedReceiveOptions& options)
    : context_(context),
      sink_(options.sink),
      domain_(static_cast<const SoftDomain*>(options.domain)->id()),
      max_segments_(std::max(options.max_segments, 1u)),
      anchor_(std::make_shared<decltype(anchor_)::element_type>()),
      max_receives_(options.max_receives) {
  anchor_->Begin(this);
}

SoftSharedReceiveQueue::~SoftSharedReceiveQueue() {
  anchor_->End();
  context_.executor().Drain();
}

PostResult SoftSharedReceiveQueue::PostReceive(const ReceiveRequest& request) {
  if (request.segments.size() > max_segments_) return PostResult::kTooManySegments;
  SpinLockHolder holder(&lock_);
  const uint64_t n = receives_.posted.load(std::memory_order_relaxed);
  if (n - receives_.done.load(std::memory_order_relaxed) >= max_receives_) {
    return PostResult::kQueueFull;
  }
  const size_t segments = request.segments.size();
  if (!receives_.HasRoom(segments) && !receives_.MakeRoom(segments)) return PostResult::kQueueFull;
  receives_.at(n).id = request.id;
  receives_.at(n).quiet = request.quiet;
  const uint64_t capacity = receives_.CopySegments(n, request.segments);
  receives_.at(n).capacity = static_cast<uint32_t>(std::min<uint64_t>(capacity, UINT32_MAX));
  receives_.posted.store(n + 1, std::memory_order_release);
  if (line_.empty()) [[likely]] {
    open_ = n + 1;
  } else {
    const Nanos now = context_.executor().Now();
    line_.Expire(now);  // the executor may be too busy to do it
    WakeLine(now);
    SettleLine();
  }
  return PostResult::kOk;
}

bool SoftSharedReceiveQueue::Take(SoftQueuePair& pair, WorkQueue<ReceiveEntry>* to) {
  SpinLockHolder holder(&lock_);
  const uint64_t from = receives_.done.load(std::memory_order_relaxed);
  if (from >= open_ && !TakeTurn(pair)) [[unlikely]]
    return false;
  const uint64_t n = to->posted.load(std::memory_order_relaxed);
  to->at(n).id = receives_.at(from).id;
  to->at(n).capacity = receives_.at(from).capacity;
  to->at(n).quiet = receives_.at(from).quiet;
  to->CopySegments(n, receives_.segments(from));
  to->posted.store(n + 1, std::memory_order_release);
  receives_.done.store(from + 1, std::memory_order_release);
  receives_.reaped.store(from + 1, std::memory_order_release);
  CheckLimit();
  return true;
}

void SoftSharedReceiveQueue::CheckLimit() {
  if (available() >= limit_) return;
  limit_ = 0;
  if (sink_ == nullptr) return;
  low_marks_.fetch_add(1);
  anchor_->Post(context_.executor());
}

bool SoftSharedReceiveQueue::TakeTurn(SoftQueuePair& pair) {
  ReceiveLine::Waiter& waiter = pair.receive_waiter();
  const bool may = line_.Take(waiter, available());
  if (!may && pair.HoldsMessages()) line_.Enter(waiter);
  SettleLine();
  return may;
}

void SoftSharedReceiveQueue::WakeLine(Nanos now) {
  while (ReceiveLine::Waiter* waiter = line_.WakeNext(available(), now)) {
    SoftQueuePair::OfWaiter(*waiter).MarkArrived();
  }
}

void SoftSharedReceiveQueue::SettleLine() {
  open_ = line_.empty() ? receives_.posted.load(std::memory_order_relaxed) : 0;
  if (watched_ || line_.expiry() == ReceiveLine::kNever) return;
  watched_ = true;
  watch_asked_.store(true);
  anchor_->Post(context_.executor());
}

void SoftSharedReceiveQueue::StopWaiting(SoftQueuePair& pair) {
  SpinLockHolder holder(&lock_);
  line_.Leave(pair.receive_waiter());
  if (!line_.empty()) WakeLine(context_.executor().Now());
  SettleLine();
}

void SoftSharedReceiveQueue::WatchLine() {
  Executor& executor = context_.executor();
  Nanos due;
  {
    SpinLockHolder holder(&lock_);
    const Nanos now = executor.Now();
    line_.Expire(now);
    WakeLine(now);
    due = line_.expiry();
    watched_ = due != ReceiveLine::kNever;
    if (!watched_) return;
  }
  try {
    executor.RunAt(due, [anchor = anchor_] {
      if (SoftSharedReceiveQueue* const queue = anchor->Get()) queue->WatchLine();
    });
  } catch (const std::bad_alloc&) {
    watch_asked_.store(true);
    anchor_->Post(executor);  // runs again at once, without the timer
  }
}

void SoftSharedReceiveQueue::Run() {
  if (watch_asked_.exchange(false)) WatchLine();
  TellLowMarks();
}

void SoftSharedReceiveQueue::TellLowMarks() {
  const auto anchor = anchor_;  // the sink may destroy the queue
  for (uint32_t left = low_marks_.exchange(0); left > 0; --left) {
    sink_->OnLowWatermark(*this);
    if (anchor->Get() == nullptr) return;
  }
}

absl::Status SoftSharedReceiveQueue::Resize(uint32_t max_receives) {
  if (max_receives > context_.attributes().max_requests_per_queue) {
    return absl::ResourceExhaustedError("above the device's limit");
  }
  SpinLockHolder holder(&lock_);
  if (available() > max_receives) {
    return absl::FailedPreconditionError("more receives are posted");
  }
  if (!receives_.Allow(max_receives, max_segments_)) {
    return absl::ResourceExhaustedError("no memory for the queue");
  }
  max_receives_ = max_receives;
  return absl::OkStatus();
}

void SoftSharedReceiveQueue::SetLimit(uint32_t limit) {
  SpinLockHolder holder(&lock_);
  limit_ = limit;
  CheckLimit();
}

uint32_t SoftSharedReceiveQueue::outstanding() const {
  SpinLockHolder holder(&lock_);
  uint64_t sum = available();
  for (const SoftQueuePair* pair : pairs_) sum += pair->TakenReceives();
  return static_cast<uint32_t>(sum);
}

void SoftSharedReceiveQueue::AddPair(SoftQueuePair& pair) {
  SpinLockHolder holder(&lock_);
  pairs_.push_back(&pair);
}

void SoftSharedReceiveQueue::RemovePair(SoftQueuePair& pair) {
  SpinLockHolder holder(&lock_);
  pairs_.erase(std::remove(pairs_.begin(), pairs_.end(), &pair), pairs_.end());
}

}  // namespace viaduct::verbs
