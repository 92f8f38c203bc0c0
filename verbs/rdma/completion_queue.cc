#include "verbs/rdma/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/numeric/bits.h"
#include "verbs/base/futex.h"
#include "verbs/base/log.h"
#include "verbs/rdma/connection.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/shared_receive_queue.h"
#include "verbs/wait_result.h"

namespace viaduct::verbs::rdma {
namespace {

constexpr int kBatch = 16;
constexpr int kTurns = 64;  // batches of each queue that the control thread takes at once
constexpr uint32_t kSmallestQueue = 512;

}  // namespace

std::shared_ptr<CompletionCore> CompletionCore::Make(Device& device, Nanos spin) {
  EventLoop& loop = device.loop();
  return std::shared_ptr<CompletionCore>(new CompletionCore(device, spin),
                                         [&loop](CompletionCore* core) {
                                           if (loop.OnExecutor()) {
                                             delete core;
                                           } else {
                                             core->deletion_errand_.Post(loop, core);
                                           }
                                         });
}

CompletionCore::CompletionCore(Device& device, Nanos spin)
    : device_(device),
      spin_(spin),
      ticker_(device.loop().NewTicker([this] { return Tick(); })),
      channel_(device, *this) {}

CompletionCore::~CompletionCore() {
  ticker_.reset();
  for (int i = queue_count_.load(); i-- > 0;) ibv_destroy_cq(queues_[i].handle);
}

int CompletionCore::Reserve(uint32_t entries) {
  MutexLock guard(&reserve_mutex_);
  return ReserveLocked(entries);
}

int CompletionCore::ReserveLocked(uint32_t entries) {
  const int count = queue_count_.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (queues_[i].size - queues_[i].reserved >= entries) {
      queues_[i].reserved += entries;
      return i;
    }
  }
  // Each is larger than those before, so that even many pairs need few of them.
  const uint32_t most = static_cast<uint32_t>(device_.limits().max_cqe);
  const uint32_t size =
      std::min(most, std::max(absl::bit_ceil(entries), kSmallestQueue << std::min(count, 12)));
  if (count == kMaxQueues || size < entries) {
    Log(LogLevel::kWarn, device_.name(), ": no room for ", entries, " completions more beside ",
        count, " queues; one of the device's has ", most);
    return -1;
  }
  if (count == 0) channel_.Open();
  Queue& queue = queues_[count];
  queue.handle = ibv_create_cq(device_.verbs(), static_cast<int>(size),
                               static_cast<CqHandler*>(this), channel_.handle(), 0);
  if (queue.handle == nullptr) {
    LogErrno(errno, "ibv_create_cq");
    return -1;
  }
  queue.size = size;
  queue.reserved = entries;
  queue_count_.store(count + 1, std::memory_order_release);
  ibv_req_notify_cq(queue.handle, 0);
  return count;
}

void CompletionCore::Release(int number, uint32_t entries) {
  MutexLock guard(&reserve_mutex_);
  queues_[number].reserved -= entries;
}

int CompletionCore::ReserveShared(const SharedReceiveCore& receives) {
  MutexLock guard(&reserve_mutex_);
  SharedReservation& reservation = shared_[&receives];
  if (reservation.pairs == 0) reservation.number = ReserveLocked(receives.depth());
  if (reservation.number < 0) {
    shared_.erase(&receives);
    return -1;
  }
  ++reservation.pairs;
  return reservation.number;
}

void CompletionCore::ReleaseShared(const SharedReceiveCore& receives) {
  MutexLock guard(&reserve_mutex_);
  const auto reservation = shared_.find(&receives);
  if (--reservation->second.pairs > 0) return;
  queues_[reservation->second.number].reserved -= receives.depth();
  shared_.erase(reservation);
}

inline void CompletionCore::Dispatch(const ibv_wc& completion, Completion* out, int n, int* taken) {
  if (WorkId::IsSpecial(completion.wr_id)) {
    if (WorkId::IsNudge(completion.wr_id)) {
      WorkId::ConnectionOf(completion.wr_id)->CompleteNudge();
    } else {
      SharedReceiveCore::Complete(completion);
    }
    return;
  }
  Connection& connection = *WorkId::ConnectionOf(completion.wr_id);
  const Direction direction = WorkId::DirectionOf(completion.wr_id);
  if (*taken == n || first_ != nullptr ||
      !connection.CompleteInTurn(direction, completion, out, taken)) {
    connection.Complete(direction, completion);
  }
}

inline bool CompletionCore::HarvestTo(Completion* out, int n, int* taken) {
  bool any = false;
  ibv_wc completions[kBatch];
  for (int i = 0, count = queue_count_.load(std::memory_order_acquire); i < count; ++i) {
    int got;
    do {
      got = ibv_poll_cq(queues_[i].handle, kBatch, completions);
      if (got < 0) [[unlikely]]
        NoteFailedPoll(queues_[i]);
      for (int k = 0; k < got; ++k) Dispatch(completions[k], out, n, taken);
      any = any || got > 0;
    } while (got == kBatch && *taken < n);
  }
  return any;
}

[[gnu::cold]] void CompletionCore::NoteFailedPoll(Queue& queue) {
  if (std::exchange(queue.failed, true)) return;
  Log(LogLevel::kWarn, device_.name(),
      ": ibv_poll_cq fails; until it does not, connections complete nothing");
}

bool CompletionCore::Harvest() {
  int taken = 0;
  return HarvestTo(nullptr, 0, &taken);
}

void CompletionCore::List(Direction direction, WorkQueue& queue) {
  ++listed_;
  if (queue.Has(WorkQueue::kListed)) return;
  queue.Set(WorkQueue::kListed);
  WorkQueue* const before = direction == kSends ? last_sends_ : last_;
  WorkQueue*& link = before != nullptr ? before->next_listed : first_;
  queue.next_listed = std::exchange(link, &queue);
  if (direction == kSends) last_sends_ = &queue;
  if (last_ == before) last_ = &queue;
}

void CompletionCore::Unlist(WorkQueue& queue) {
  if (!queue.Has(WorkQueue::kListed)) return;
  WorkQueue* before = nullptr;
  for (WorkQueue* at = first_; at != &queue; at = at->next_listed) before = at;
  (before != nullptr ? before->next_listed : first_) = queue.next_listed;
  if (last_ == &queue) last_ = before;
  if (last_sends_ == &queue) last_sends_ = before;
  queue.Clear(WorkQueue::kListed);
}

int CompletionCore::Reap(Completion* out, int n) {
  int count = 0;
  while (first_ != nullptr && count < n) {
    WorkQueue& queue = *first_;
    while (count < n && queue.HasNews()) {
      const WorkRecord& record = queue.At(queue.head());
      if (queue.Shows(record)) queue.Show(record, &out[count++]);
      queue.PopHead();
      if (queue.outstanding != nullptr) {
        queue.outstanding->fetch_sub(1, std::memory_order_relaxed);
      }
    }
    if (queue.HasNews()) break;
    queue.ClearDoneBehind();
    Unlist(queue);
  }
  return count;
}

void CompletionCore::SkipUnseen(WorkQueue& queue) {
  while (queue.HasNews() && !queue.Shows(queue.At(queue.head()))) queue.PopHead();
  if (queue.HasNews()) return;
  queue.ClearDoneBehind();
  Unlist(queue);
}

int CompletionCore::PollLocked(Completion* out, int n) {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  int count = first_ != nullptr ? Reap(out, n) : 0;
  if (count == n) return count;
  HarvestTo(out, n, &count);
  return first_ != nullptr ? count + Reap(out + count, n - count) : count;
}

CompletionCore::Found CompletionCore::Look() {
  PassLockHolder guard(&lock);
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool any = Harvest();
  if (HasNews()) return Found::kNews;
  return any ? Found::kOthers : Found::kNothing;
}

void CompletionCore::RequestEvents() {
  for (int i = 0, count = queue_count_.load(std::memory_order_acquire); i < count; ++i) {
    ibv_req_notify_cq(queues_[i].handle, 0);
  }
}

WaitResult CompletionCore::Wait(Deadline deadline, uint32_t wakes) {
  const Clock& clock = device_.loop();
  const Nanos spin_end = clock.Now() + spin_;
  do {
    if (wakes_.load(std::memory_order_acquire) != wakes) return WaitResult::kWoken;
    if (Look() == Found::kNews) return WaitResult::kReady;
    if (deadline.Passed(clock)) return WaitResult::kTimedOut;
  } while (clock.Now() < spin_end);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const absl::Cleanup leave = [this] { waiters_.fetch_sub(1, std::memory_order_relaxed); };
  WaitResult result = WaitResult::kTimedOut;
  for (bool woken = false;;) {
    const uint32_t news = news_.load(std::memory_order_acquire);
    if (wakes_.load(std::memory_order_acquire) != wakes) {
      result = WaitResult::kWoken;
      break;
    }
    // Polls before it arms the device, which otherwise would report once more what woke it.
    if (std::exchange(woken, false)) {
      if (Look() == Found::kNews) {
        result = WaitResult::kReady;
        break;
      }
      if (deadline.Passed(clock)) break;  // peers whose messages are dropped may ring for ever
    }
    RequestEvents();
    const Found found = Look();
    if (found == Found::kNews) {
      result = WaitResult::kReady;
      break;
    }
    // Look takes a limited number, and an armed device does not report the completions behind them.
    if (found == Found::kOthers && !deadline.Passed(clock)) continue;
    const FutexResult slept = Sleep(news, deadline);
    woken = slept == FutexResult::kWoken;
    if (woken) continue;
    result = ToWaitResult(slept);
    break;
  }
  return result;
}

// Of several waiters one sleeps in the channel, and the device notifies nobody else. So when this
// one leaves, another waiter takes its place, or the control thread does, whose tick checks whether
// anybody still polls.
FutexResult CompletionCore::Sleep(uint32_t news, Deadline deadline) {
  if (!channel_.Enter()) return FutexWait(news_, news, deadline);
  const absl::Cleanup leave = [this] {
    channel_.Leave();
    if (waiters_.load(std::memory_order_relaxed) > 1) WakeSleepers();
    if (always_.load(std::memory_order_relaxed)) {
      TendSoon();
    } else {
      StartTicks();
    }
  };
  if (news_.load(std::memory_order_seq_cst) != news) return FutexResult::kWoken;
  return channel_.Sleep(deadline);
}

void CompletionCore::WakeSleepers() {
  news_.fetch_add(1, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) != 0) FutexWake(news_, INT_MAX);
}

void CompletionCore::WakeWaiters() {
  WakeSleepers();
  channel_.Rouse();
}

void CompletionCore::Wake() {
  wakes_.fetch_add(1, std::memory_order_release);
  WakeWaiters();
}

void CompletionCore::Notify() {
  WakeWaiters();
  TendSoon();
}

void CompletionCore::TendSoon() { tend_errand_.Post(device_.loop(), shared_from_this()); }

void CompletionCore::OnCqEvent() {
  WakeWaiters();
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  const bool polled = polls != polls_seen_ || waiters_.load(std::memory_order_relaxed) != 0;
  polls_seen_ = polls;
  if (polled && !always_.load(std::memory_order_relaxed)) {
    StartTicks();
  } else {
    Tend();
  }
}

void CompletionCore::StartTicks() {
  if (tells_.load(std::memory_order_relaxed)) {
    ticker_->Start();
  } else {
    ticker_->StartLate();
  }
}

NextTick CompletionCore::Tick() {
  const uint64_t polls = polls_.load(std::memory_order_relaxed);
  if (polls != polls_seen_) {
    polls_seen_ = polls;
    return tells_.load(std::memory_order_relaxed) ? NextTick::kSoon : NextTick::kLate;
  }
  if (!channel_.occupied()) Tend();  // a thread that sleeps there has armed the device
  return NextTick::kNever;
}

void CompletionCore::Tend() {
  const std::shared_ptr<CompletionCore> self = weak_from_this().lock();  // the sink may delete this
  if (self == nullptr) return;  // its deletion is already posted to this thread
  bool armed = false;
  for (int turn = 0;; ++turn) {
    if (turn == kTurns) {  // the peer never pauses: let others have a turn
      tend_errand_.Post(device_.loop(), self);
      return;
    }
    bool any, news;
    uint64_t listed;
    {
      PassLockHolder guard(&lock);
      any = Harvest();
      news = HasNews();
      listed = listed_;
    }
    if (news && listed != told_) {
      told_ = listed;
      CompletionQueue* owner;
      CompletionSink* sink;
      {
        MutexLock guard(&sink_mutex_);
        owner = owner_;
        sink = sink_;
      }
      if (sink != nullptr) {
        always_.store(false, std::memory_order_relaxed);
        sink->OnCompletions(*owner);
      }
    }
    if (armed && !any) break;
    RequestEvents();
    armed = true;
  }
  channel_.Watch();
  polls_seen_ = polls_.load(std::memory_order_relaxed);
}

void CompletionCore::Arm(CompletionQueue& queue, CompletionSink& sink) {
  SetSink(&queue, &sink);
  arm_errand_.Post(device_.loop(), shared_from_this());
}

void CompletionCore::TendArmed() {
  always_.store(true, std::memory_order_relaxed);
  told_ = 0;
  Tend();
}

void CompletionCore::SetSink(CompletionQueue* queue, CompletionSink* sink) {
  MutexLock guard(&sink_mutex_);
  owner_ = queue;
  sink_ = sink;
  tells_.store(sink != nullptr, std::memory_order_relaxed);
}

RdmaCompletionQueue::RdmaCompletionQueue(Device& device, std::shared_ptr<CompletionCore> core,
                                         CompletionSink* sink)
    : CompletionQueue(core->lock), device_(device), core_(std::move(core)) {
  core_->SetSink(this, sink);
}

RdmaCompletionQueue::~RdmaCompletionQueue() {
  core_->SetSink(nullptr, nullptr);
  if (!device_.loop().OnExecutor()) device_.loop().Drain();
}

}  // namespace viaduct::verbs::rdma
