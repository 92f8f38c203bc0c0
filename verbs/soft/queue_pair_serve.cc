// What completion queues call: progress, reaping, heat.
#include <new>

#include "absl/base/attributes.h"
#include "absl/cleanup/cleanup.h"
#include "verbs/soft/context.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {
namespace {

constexpr int kDefaultBudget = 64;  // messages per Link::Poll, when nobody takes completions
constexpr int kTries = 100;
constexpr Nanos kLookAgain = kNanosPerMilli;

// A thread that polls in a loop holds its queue's lock most of the time, hence several tries. There
// is no waiting, since a poster may have been stopped while it holds the lock.
bool TryLockSoon(PassLock& lock) ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, lock) {
  for (int tries = 0; !lock.TryLock(); Relax()) {
    if (++tries == kTries) return false;
  }
  return true;
}

}  // namespace

bool SoftQueuePair::Arrived() const {
  Link* link = link_.load(std::memory_order_relaxed);
  return link != nullptr && receiving_.load(std::memory_order_relaxed) &&
         !failing_.load(std::memory_order_relaxed) && link->Arrived();
}

bool SoftQueuePair::TryPump(Link& link) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (!send_lock_.TryLock()) {
    // The holder may have checked before the event that lets a request go now. A hot pair is
    // served again, or cools.
    if (!hot()) LookLater();
    return false;
  }
  const absl::Cleanup unlock = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { send_lock_.Unlock(); };
  const uint64_t done = sends_.done.load(std::memory_order_relaxed);
  const uint32_t incomplete = incomplete_.load(std::memory_order_relaxed);
  PumpLink(link);
  return sends_.done.load(std::memory_order_relaxed) != done ||
         incomplete_.load(std::memory_order_relaxed) != incomplete;
}

void SoftQueuePair::LookLater() {
  if (look_due_.exchange(true)) return;
  Executor& executor = context_.executor();
  try {
    executor.RunAt(executor.Now() + kLookAgain, [anchor = anchor_] {
      SoftQueuePair* const pair = anchor->Get();
      if (pair == nullptr) return;
      pair->look_due_.store(false);
      pair->MarkArrived();
    });
  } catch (const std::bad_alloc&) {
    look_due_.store(false);
    MarkArrived();  // at once instead
  }
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool SoftQueuePair::Poll(Link& link,
                                                             const Attachment& attachment,
                                                             int n) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const int budget = n == 0 ? kDefaultBudget : n;
  if (attachment.home) return PollLink(link, budget);
  // Only sends complete in the queue that is polled: the home's lock is tried if something arrived.
  if (!link.Arrived() || !home_.lock().TryLock()) return false;
  const absl::Cleanup unlock = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { home_.lock().Unlock(); };
  // Whoever held the lock may have met what ends the pair: it is not to be met a second time.
  if (failing_.load(std::memory_order_relaxed)) return false;
  return PollLink(link, budget);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline int SoftQueuePair::Reap(const Attachment& attachment,
                                                            Completion* out, int n) {
  int got = 0;
  if (attachment.sends) {
    // Sends first: a message that was received may answer one of them.
    if (due_.receives != 0) [[unlikely]]
      got = ReapDue(out, n);
    got += ReapSends(out + got, n - got, sends_.done.load(std::memory_order_acquire));
    if (got == n) {
      if (attachment.home) NoteDue();
      return got;
    }
  }
  if (!attachment.home) return got;
  return got + ReapReceives(out + got, n - got, receives_.done.load(std::memory_order_relaxed));
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool SoftQueuePair::ServeLink(Attachment& attachment, int n) {
  bool moved = false;
  Link* link = link_.load(std::memory_order_relaxed);
  if (link != nullptr && receiving_.load(std::memory_order_relaxed) &&
      !failing_.load(std::memory_order_relaxed)) [[likely]] {
    moved = Poll(*link, attachment, n);
    if (sends_.done.load(std::memory_order_relaxed) !=
        sends_.posted.load(std::memory_order_relaxed)) {
      moved |= TryPump(*link);
    }
    if (attention_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      PayAttention(attachment, n);
  }
  return moved;
}

// Polls of both queues may count at once and lose a count, which is only a hint.
inline void SoftQueuePair::CountActivity() {
  activity_.store(activity_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

int SoftQueuePair::Serve(Attachment& attachment, Completion* out, int n) {
  const bool moved = ServeLink(attachment, n);
  const int got = n != 0 ? Reap(attachment, out, n) : 0;
  if (moved || got != 0) {
    CountActivity();
    if (moved && attachment_count_ == 2) NotifyOther(attachment);
  }
  return got;
}

void SoftQueuePair::PayAttention(const Attachment& attachment, int n) {
  CheckDrained();
  CheckTaken(attachment);
  // This Serve is about to make room in the ring: another one is due for the held message.
  if ((attention_.load(std::memory_order_relaxed) & kFullRing) != 0 && n != 0) MarkArrived();
}

void SoftQueuePair::NotifyOther(const Attachment& attachment) {
  Attachment* other = Other(attachment);
  if (other != nullptr && (!hot() || other->queue->HasSleepers())) {
    other->queue->MarkReady(*other, SoftCompletionQueue::News::kCompletion);
  }
}

void SoftQueuePair::NoteDue() {
  const uint64_t come = receives_.done.load(std::memory_order_relaxed);
  if (due_.receives != 0 || come == receives_.reaped.load(std::memory_order_relaxed)) return;
  // The sends that these receives may answer were done before the receives arrived.
  due_ = {sends_.done.load(std::memory_order_acquire), come};
}

int SoftQueuePair::ReapDue(Completion* out, int n) {
  int got = ReapSends(out, n, due_.sends);
  got += ReapReceives(out + got, n - got, due_.receives);
  if (receives_.reaped.load(std::memory_order_relaxed) == due_.receives) due_ = {};
  return got;
}

int SoftQueuePair::ReapReceives(Completion* out, int n, uint64_t end) {
  const uint64_t first = receives_.reaped.load(std::memory_order_relaxed);
  if (first == end) return 0;
  uint64_t r = first;
  for (; r != end && n > 0; r++, n--, out++) {
    const ReceiveEntry& entry = receives_.at(r);
    out->id = entry.id;
    out->context = user_context_;
    out->length = entry.length;
    out->immediate = entry.immediate;
    out->opcode = entry.opcode;
    out->status = entry.status;
    out->has_immediate = entry.has_immediate;
    out->solicited = entry.solicited;
    out->quiet = entry.quiet;
  }
  receives_.reaped.store(r, std::memory_order_release);
  return static_cast<int>(r - first);
}

int SoftQueuePair::ReapSends(Completion* out, int n, uint64_t end) {
  const uint64_t first = sends_.reaped.load(std::memory_order_relaxed);
  if (first >= end) return 0;  // SkipSuppressed may have gone beyond `end`
  uint64_t r = first;
  Completion* const begin = out;
  for (; r != end && n > 0; r++) {
    const SendEntry& entry = sends_.at(r);
    const uint8_t status = StatusToReap(r);
    if (status == kPending) break;
    if ((entry.flags & kSuppress) != 0 && status == static_cast<uint8_t>(Status::kSuccess)) {
      continue;
    }
    out->id = entry.id;
    out->context = user_context_;
    out->length = entry.length;
    out->immediate = entry.immediate;
    out->opcode = entry.opcode == Opcode::kSendInvalidate ? Opcode::kSend : entry.opcode;
    out->status = static_cast<Status>(status);
    out->has_immediate = (entry.flags & kImmediate) != 0;
    out->solicited = false;
    out->quiet = (entry.flags & kQuiet) != 0;
    out++;
    n--;
  }
  if (r != first) sends_.reaped.store(r, std::memory_order_release);
  return static_cast<int>(out - begin);
}

// A send after the failed one may have become complete when it was emitted. Its completion has not
// been reported, so it shows as flushed, like everything after a failure. A bind keeps its status,
// since it has taken effect here; a pending request is left to FlushQueues.
uint8_t SoftQueuePair::StatusBehindFailure(uint64_t n, uint8_t status) const {
  const bool kept = status == kPending || LoadOpcode(sends_.at(n)) == Opcode::kBind;
  return kept ? status : static_cast<uint8_t>(Status::kFlushed);
}

uint64_t SoftQueuePair::Reapable(const Attachment& attachment) {
  uint64_t sum = 0;
  if (attachment.home) {
    const uint64_t done = receives_.done.load(std::memory_order_relaxed);
    if (done != receives_.reaped.load(std::memory_order_relaxed)) sum = done;
  }
  if (attachment.sends) {
    SkipSuppressed();
    const uint64_t reaped = sends_.reaped.load(std::memory_order_relaxed);
    const uint64_t done = sends_.done.load(std::memory_order_acquire);
    if (reaped != done && LoadStatus(sends_.at(reaped)) != kPending) {
      sum += done - incomplete_.load(std::memory_order_relaxed) + 1;
    }
  }
  return sum;
}

// -------------------------------------------------------------------------------------- heat

void SoftQueuePair::TryHeat(Attachment& attachment) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Link* link = link_.load(std::memory_order_relaxed);
  // A link that is still connecting has nothing to poll yet.
  if (link == nullptr || !receiving_.load(std::memory_order_relaxed)) return;
  if (!attachment.queue->TakesHot()) return;
  if (Attachment* other = Other(attachment)) {
    if (!other->queue->lock().TryLock()) return;
    if (other->queue->TakesHotOfOther()) {
      other->queue->AddHot(*other);
      attachment.queue->AddHot(attachment);
      hot_.store(true);
      link->Heat();
    }
    other->queue->lock().Unlock();
  } else {
    attachment.queue->AddHot(attachment);
    hot_.store(true);
    link->Heat();
  }
}

bool SoftQueuePair::TryCool(Attachment& attachment, bool* fence) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Attachment* other = Other(attachment);
  if (other != nullptr && !TryLockSoon(other->queue->lock())) return false;
  const absl::Cleanup unlock_other = [other]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (other != nullptr) other->queue->lock().Unlock();
  };
  if (!TryLockSoon(send_lock_)) return false;
  const absl::Cleanup unlock = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { send_lock_.Unlock(); };
  if (other != nullptr) other->queue->RemoveHot(*other);
  attachment.queue->RemoveHot(attachment);
  hot_.store(false);
  if (Link* link = link_.load(std::memory_order_relaxed)) {
    // A poll that completed a read while a poster held the send lock could not emit what a fence
    // held back, and the poster had seen the read incomplete. After this nobody polls the pair.
    if (SendsUnemitted() && receiving_.load(std::memory_order_relaxed) &&
        !failing_.load(std::memory_order_relaxed)) {
      PumpLink(*link);
      CheckDrained();
    }
    *fence |= link->Cool();
  }
  return true;
}

void SoftQueuePair::MarkIfHasWork() {
  const bool arrived = Arrived();
  for (int i = 0; i < attachment_count_; i++) {
    Attachment& attachment = attachments_[i];
    // What the other queue can reap is not known without its lock; a needless mark costs one Serve.
    if (arrived || attachment_count_ == 2 || Reapable(attachment) != 0) {
      attachment.queue->MarkReady(attachment, arrived ? SoftCompletionQueue::News::kArrival
                                                      : SoftCompletionQueue::News::kCompletion);
    }
  }
}

void SoftQueuePair::MarkArrived() {
  // The home queue's attendant serves the link; the other queue need only notify whoever waits.
  home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kArrival);
  if (attachment_count_ == 2) {
    send_home_.MarkReady(attachments_[1], SoftCompletionQueue::News::kCompletion);
  }
}

void SoftQueuePair::NotifyAll() {
  for (int i = 0; i < attachment_count_; i++) {
    attachments_[i].queue->MarkReady(attachments_[i], SoftCompletionQueue::News::kCompletion);
  }
}

bool SoftQueuePair::Attend() {
  bool moved;
  {
    PassLockHolder holder(&home_.lock());
    moved = ServeLink(attachments_[0], 0);
    if (moved) {
      CountActivity();
      if (attachment_count_ == 2) NotifyOther(attachments_[0]);
    }
  }
  if (moved && (!hot() || home_.HasSleepers())) {
    home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kCompletion);
  }
  return moved;
}

}  // namespace viaduct::verbs
