#include "verbs/soft/completion_queue.h"

#include <optional>

#include "verbs/base/back_off.h"
#include "verbs/soft/attendant.h"
#include "verbs/soft/context.h"
#include "verbs/soft/doorbell.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {
namespace {

constexpr int kArmTries = 20;
constexpr int kRounds = 32;          // polls between two readings of the clock
constexpr uint32_t kReadyTurn = 15;  // at every 16th poll the cold pairs come before the hot ones

}  // namespace

SoftCompletionQueue::SoftCompletionQueue(SoftContext& context, CompletionSink* sink)
    : CompletionQueue(lock_),
      context_(context),
      doorbell_(context.doorbell()),
      attendant_(context.attendant()),
      sink_(sink) {
  context_.regions().AddUser(&lock_);
}

SoftCompletionQueue::~SoftCompletionQueue() {
  attendant_.Forget(*this);
  context_.regions().RemoveUser(&lock_);
}

// ------------------------------------------------------------------------------------- lists

void SoftCompletionQueue::PushReady(Attachment& attachment) {
  if (attachment.marked.exchange(true, std::memory_order_seq_cst)) return;
  Attachment* first = ready_.load(std::memory_order_relaxed);
  do {
    attachment.next = first;
  } while (!ready_.compare_exchange_weak(first, &attachment, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
}

void SoftCompletionQueue::MarkReady(Attachment& attachment, News news) {
  PushReady(attachment);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    RingSleepers();
  } else if (news == News::kArrival || sink_.load(std::memory_order_relaxed) != nullptr) {
    attendant_.Schedule(*this, armed_.load(std::memory_order_relaxed));
  }
}

void SoftCompletionQueue::LinkLeft() {
  Attachment* first = left_.load(std::memory_order_relaxed);
  if (!left_goes_back_) {
    Attachment* previous = nullptr;
    for (Attachment* a = first; a != nullptr; a = a->next) {
      a->previous = previous;
      previous = a;
    }
    left_goes_back_ = true;
  }
  Attachment* list = ready_.exchange(nullptr, std::memory_order_acquire);
  while (list != nullptr) {
    Attachment* const next = list->next;
    list->next = first;
    list->previous = nullptr;
    if (first != nullptr) first->previous = list;
    first = list;
    list = next;
  }
  left_.store(first, std::memory_order_seq_cst);
}

// When many pairs end together, each mark moves to left_ once, and each end unlinks only its own.
void SoftCompletionQueue::Forget(Attachment& attachment) {
  if (!attachment.marked.load(std::memory_order_acquire)) return;
  LinkLeft();
  Attachment* const next = attachment.next;
  Attachment* const previous = attachment.previous;
  if (next != nullptr) next->previous = previous;
  if (previous != nullptr) {
    previous->next = next;
  } else {
    left_.store(next, std::memory_order_seq_cst);
  }
  attachment.marked.store(false, std::memory_order_release);
}

void SoftCompletionQueue::AddHot(Attachment& attachment) {
  hot_[hot_count_++] = &attachment;
  if (hot_count_ == 1) attendant_.Schedule(*this);
}

void SoftCompletionQueue::RemoveHot(Attachment& attachment) {
  for (int i = 0; i < hot_count_; i++) {
    if (hot_[i] == &attachment) {
      hot_[i] = hot_[--hot_count_];
      return;
    }
  }
}

// ----------------------------------------------------------------------------------- polling

inline int SoftCompletionQueue::Serve(Completion* out, int n) {
  int got = 0;
  const uint32_t turn = ++turn_;
  const bool ready_first = (turn & kReadyTurn) == 0;
  if (ready_first) [[unlikely]] {
    doorbell_.Collect();
    if (HasReady()) got = ServeReady(out, n);
    if (got == n && n != 0) return got;
  }
  const int count = hot_count_;
  // Each poll starts with another pair, so that none starves behind a busy one.
  int at = count > 1 ? static_cast<int>(turn % static_cast<uint32_t>(count)) : 0;
  for (int i = 0; i < count; i++) {
    Attachment& attachment = *hot_[at];
    if (++at == count) at = 0;
    got += attachment.pair->Serve(attachment, out + got, n - got);
    if (got == n && n != 0) return got;
  }
  if (ready_first) return got;
  if (got == 0) doorbell_.Collect();
  // A result below `n` means that there are no more completions.
  if (HasReady()) got += ServeReady(out + got, n - got);
  return got;
}

int SoftCompletionQueue::PollLocked(Completion* out, int n) {
  const int got = Serve(out, n);
  if (tick_.load(std::memory_order_relaxed)) [[unlikely]] {
    tick_.store(false, std::memory_order_relaxed);
    Cool(/*all=*/false);
  }
  return got;
}

int SoftCompletionQueue::ServeReady(Completion* out, int n) {
  // Pairs left over by earlier polls come first, so that a queue that is never empty serves all.
  const int got = ServeList(left_, out, n);
  return got < n || n == 0 ? got + ServeList(ready_, out + got, n - got) : got;
}

int SoftCompletionQueue::ServeList(std::atomic<Attachment*>& from, Completion* out, int n) {
  int got = 0;
  for (Attachment* list = from.exchange(nullptr, std::memory_order_acquire); list != nullptr;) {
    if (got == n && n != 0) {
      left_goes_back_ = false;
      left_.store(list, std::memory_order_seq_cst);
      break;
    }
    Attachment& attachment = *list;
    list = attachment.next;
    // A locked exchange, so that Serve sees everything stored before a mark that found this set.
    attachment.marked.exchange(false, std::memory_order_seq_cst);
    SoftQueuePair& pair = *attachment.pair;
    const uint32_t before = pair.activity();
    got += pair.Serve(attachment, out + got, n - got);
    // Only a pair that made progress becomes hot: others must not fill the hot list.
    if (!pair.hot() && pair.activity() != before) pair.TryHeat(attachment);
    if (!pair.hot() && pair.HasWork(attachment)) PushReady(attachment);
  }
  return got;
}

uint64_t SoftCompletionQueue::Reapable() const {
  uint64_t sum = 0;
  for (int i = 0; i < hot_count_; i++) sum += hot_[i]->pair->Reapable(*hot_[i]);
  for (const std::atomic<Attachment*>* list : {&left_, &ready_}) {
    for (Attachment* a = list->load(std::memory_order_acquire); a != nullptr; a = a->next) {
      if (!a->pair->hot()) sum += a->pair->Reapable(*a);
    }
  }
  return sum;
}

bool SoftCompletionQueue::Cool(bool all) {
  SoftQueuePair* cooled[kMaxHot];
  Attachment* attachments[kMaxHot];
  int count = 0;
  bool fence = false;
  bool quiet = true;
  for (int i = 0; i < hot_count_;) {
    Attachment& attachment = *hot_[i];
    SoftQueuePair& pair = *attachment.pair;
    const bool moved = pair.activity() != attachment.activity_seen;
    attachment.activity_seen = pair.activity();
    if (!all && (moved || pair.Arrived())) {
      i++;
    } else if (!pair.TryCool(attachment, &fence)) {
      quiet = false;
      i++;
    } else {
      cooled[count] = &pair;
      attachments[count++] = &attachment;
    }
  }
  if (fence) doorbell_.HeavyFence();
  for (int i = 0; i < count; i++) {
    cooled[i]->MarkIfHasWork();
    if (attachments[i]->marked.load(std::memory_order_relaxed)) quiet = false;
  }
  return quiet;
}

bool SoftCompletionQueue::Look() {
  PassLockHolder holder(&lock_);
  Serve(nullptr, 0);
  return Reapable() != 0;
}

// ----------------------------------------------------------------------------------- waiting

void SoftCompletionQueue::RingSleepers() {
  bell_.fetch_add(1, std::memory_order_seq_cst);
  doorbell_.Wake(bell_);
}

void SoftCompletionQueue::Wake() {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  if (HasSleepers()) RingSleepers();
}

WaitResult SoftCompletionQueue::Wait(Deadline deadline, uint32_t wakes) {
  bool decided = false;
  const WaitResult result = Spin(wakes, deadline, &decided);
  return decided ? result : Sleep(wakes, deadline);
}

WaitResult SoftCompletionQueue::Spin(uint32_t wakes, Deadline deadline, bool* decided) {
  *decided = true;
  const Clock& clock = context_.executor();
  const Nanos spin = doorbell_.SpinTime();
  const Nanos end = spin == 0 ? 0 : clock.Now() + spin;
  for (;;) {
    for (int i = 0; i < (spin == 0 ? 1 : kRounds); i++) {
      if (wakes_.load(std::memory_order_relaxed) != wakes) return WaitResult::kWoken;
      if (Look()) return WaitResult::kReady;
    }
    if (deadline.Passed(clock)) return WaitResult::kTimedOut;
    if (spin == 0 || clock.Now() >= end) break;
  }
  *decided = false;
  return WaitResult::kReady;
}

// Counts a thread in sleepers_ from before it falls asleep until it is awake. If the thread is
// cancelled in its sleep, the work for which it may have been rung is left to the attendant.
class SoftCompletionQueue::Sleeper {
 public:
  explicit Sleeper(SoftCompletionQueue& queue) : queue_(queue) {
    queue_.sleepers_.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Sleeper() {
    queue_.sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    if (asleep_) queue_.LeaveRing();
  }
  WaitResult Sleep(uint32_t seen, Deadline deadline) {
    asleep_ = true;
    const WaitResult result = queue_.doorbell_.Sleep(queue_.bell_, seen, deadline);
    asleep_ = false;
    return result;
  }

 private:
  SoftCompletionQueue& queue_;
  bool asleep_ = false;
};

// Work for which a sleeper was rung, instead of the attendant, must not stay unattended.
void SoftCompletionQueue::LeaveRing() {
  doorbell_.Collect();
  if (HasReady()) attendant_.Schedule(*this);
}

WaitResult SoftCompletionQueue::Sleep(uint32_t wakes, Deadline deadline) {
  BackOff back_off(/*spins=*/0);
  for (;;) {
    std::optional<Sleeper> sleeper(*this);
    const uint32_t seen = bell_.load(std::memory_order_seq_cst);
    bool quiet;
    {
      PassLockHolder holder(&lock_);
      quiet = Cool(/*all=*/true) && !HasReady();
    }
    WaitResult result = WaitResult::kReady;
    if (quiet && wakes_.load(std::memory_order_seq_cst) == wakes) {
      result = sleeper->Sleep(seen, deadline);
    }
    sleeper.reset();
    if (wakes_.load(std::memory_order_seq_cst) != wakes) {
      LeaveRing();
      return WaitResult::kWoken;
    }
    if (Look()) return WaitResult::kReady;
    if (result != WaitResult::kReady) return result;
    // Checked here, too, since a peer may keep ringing for ever.
    if (deadline.Passed(context_.executor())) return WaitResult::kTimedOut;
    if (!quiet) back_off.Pause();  // lets a poster, or a poll of a pair's other queue, finish
  }
}

// --------------------------------------------------------------------------------- attendance

void SoftCompletionQueue::Arm(CompletionSink& sink) {
  sink_.store(&sink, std::memory_order_relaxed);
  armed_.store(true, std::memory_order_relaxed);
  doorbell_.Expect();
  // A pair stays hot while its other queue is being polled, and its news would wait for a tick.
  for (int tries = 0; tries < kArmTries; tries++) {
    {
      PassLockHolder holder(&lock_);
      Serve(nullptr, 0);
      if (Reapable() != 0) break;
      // A mark from here on schedules the attendant at once.
      if (Cool(/*all=*/true) && !HasReady()) return;
    }
    Relax();
  }
  attendant_.Schedule(*this, /*now=*/true);
}

bool SoftCompletionQueue::Attend() {
  const bool armed = armed_.load(std::memory_order_relaxed);
  if (armed) {
    lock_.Lock();  // whoever armed it is about to sleep, and does not poll
  } else if (!lock_.TryLock()) {
    // Somebody polls, perhaps in a loop that never leaves us the lock: the next poll is to cool.
    tick_.store(true, std::memory_order_relaxed);
    return true;
  }
  const bool polled = turn_ != turn_at_tick_ && !armed;
  Serve(nullptr, 0);
  Cool(/*all=*/armed);
  turn_at_tick_ = turn_;
  const uint64_t reapable = Reapable();
  const bool hot = hot_count_ != 0;
  CompletionSink* const sink = sink_.load(std::memory_order_relaxed);
  // A sleeper takes the completions; if it is cancelled instead, LeaveRing has the sink called.
  const bool asleep = HasSleepers();
  bool call = false;
  // A consumer that has polled since may have taken the completions it was notified of: if there
  // are as many again, they are new.
  if (reapable == 0 || polled) told_ = 0;
  if (reapable != 0 && sink != nullptr && !polled && !asleep && (armed || reapable != told_)) {
    told_ = reapable;
    armed_.store(false, std::memory_order_relaxed);
    call = true;
  }
  const bool later = sink != nullptr && reapable != 0 && polled;
  lock_.Unlock();
  if (reapable != 0 && asleep) {
    RingSleepers();
  } else if (call) {
    sink->OnCompletions(*this);  // may destroy *this
  }
  return hot || later;
}

}  // namespace viaduct::verbs
