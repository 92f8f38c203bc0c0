// Collecting marks, bells, sleeping.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "absl/cleanup/cleanup.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/epoch.h"
#include "verbs/base/futex.h"
#include "verbs/soft/shm/host.h"
#include "verbs/wait_result.h"

namespace viaduct::verbs::shm {
namespace {

constexpr int kQuietTicks = 3;    // then the control thread sleeps again
constexpr int kMaxFutexes = 128;  // of one futex_waitv

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

// As in linux/futex.h since 5.16.
struct WaitEntry {
  uint64_t value;
  uint64_t address;
  uint32_t flags;
  uint32_t reserved;
};
constexpr uint32_t kFutex32 = 2;
constexpr uint32_t kFutexPrivate = 128;

// How many futexes one wait takes: our own alone where the kernel (before 5.16) or a filter of
// system calls, which may come later, has no futex_waitv.
constinit std::atomic<int> wait_entries{kMaxFutexes};

// Of one wait, and no word about others: also for want of memory, and where the last link of a peer
// that has died went with its futex.
bool IsEndOfWait(int error) {
  return error == EAGAIN || error == EINTR || error == ETIMEDOUT || error == ENOMEM ||
         error == EFAULT;
}

}  // namespace

void Host::Collect() {
  EpochGuard guard;
  bool found = false;
  for (const std::shared_ptr<Peer>& peer : peers_.load(std::memory_order_acquire)->peers) {
    found |= peer->CollectMarks();
  }
  if (found) collected_.fetch_add(1, std::memory_order_relaxed);
}

template <typename Change>
bool Host::ChangeBells(const Change& change) {
  bool marks = false;
  for (const std::shared_ptr<Peer>& peer : peers_.load(std::memory_order_acquire)->peers) {
    change(peer->my_bell());
    marks |= peer->HasMarks();
  }
  return marks;
}

bool Host::Arm() {
  const bool alone = sleepers_ == 0;
  return ChangeBells([alone](std::atomic<uint32_t>& bell) {
    uint32_t off = kBellOff;
    if (alone) {
      bell.exchange(kBellSocket, std::memory_order_seq_cst);
    } else {
      // What a sleeper has armed stays its own, but it does not know of the others.
      bell.compare_exchange_strong(off, kBellSocket, std::memory_order_seq_cst);
    }
  });
}

// The bell of some peer.
void Host::OnRing() {
  {
    SpinLockHolder holder(&bell_lock_);
    ticking_ = true;
  }
  ticker_->Start();
  quiet_ticks_ = 0;
  Collect();
}

NextTick Host::Tick() {
  for (const std::shared_ptr<Peer>& peer : peers_.load()->peers) peer->RingAgain();
  Collect();
  const uint32_t collected = collected_.load(std::memory_order_relaxed);
  if (collected != collected_at_tick_) {
    collected_at_tick_ = collected;
    quiet_ticks_ = 0;
    return NextTick::kSoon;
  }
  if (++quiet_ticks_ < kQuietTicks) return NextTick::kSoon;
  bool marks = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    ticking_ = marks = Arm();
  }
  return marks ? NextTick::kSoon : NextTick::kNever;
}

void Host::Expect() {
  if (descent_.inherited()) return;
  bool marks = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    marks = Arm();
  }
  if (marks) Collect();
}

WaitResult Host::Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  if (descent_.inherited()) return ToWaitResult(FutexWait(word, seen, deadline));
  const int most = wait_entries.load(std::memory_order_relaxed);
  WaitEntry entries[kMaxFutexes];
  int count = 1;
  bool marks = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    sleepers_++;
    for (const std::shared_ptr<Peer>& peer : peers_.load(std::memory_order_acquire)->peers) {
      std::atomic<uint32_t>& bell = peer->my_bell();
      if (count == most) {
        // Too many peers for one wait: the control thread passes it on.
        bell.exchange(kBellSocket, std::memory_order_seq_cst);
      } else {
        bell.exchange(kBellFutex, std::memory_order_seq_cst);
        entries[count++] = {kBellFutex, reinterpret_cast<uint64_t>(&bell), kFutex32, 0};
      }
      marks |= peer->HasMarks();
    }
  }
  const absl::Cleanup wake_up = [this] { EndSleep(); };
  WaitResult result = WaitResult::kReady;
  if (!marks) {
    if (count == 1) {
      result = ToWaitResult(FutexWait(word, seen, deadline));
    } else {
      entries[0] = {seen, reinterpret_cast<uint64_t>(&word), kFutex32 | kFutexPrivate, 0};
      timespec until = {deadline.at() / kNanosPerSecond, deadline.at() % kNanosPerSecond};
      // Behind a handler with SA_RESTART the kernel goes on waiting, time-out or not.
      const long waited = SleepIn(SYS_futex_waitv, reinterpret_cast<long>(entries), count, 0,
                                  reinterpret_cast<long>(&until), CLOCK_MONOTONIC, 0);
      if (waited < 0 && errno == ETIMEDOUT) result = WaitResult::kTimedOut;
      if (waited < 0 && errno == EINTR) result = WaitResult::kInterrupted;
      if (waited < 0 && !IsEndOfWait(errno)) wait_entries.store(1, std::memory_order_relaxed);
    }
  }
  return result;
}

void Host::EndSleep() {
  bool missed = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    // Whoever left marks meanwhile has rung already and does not ring again. The caller may not
    // look any more, so the control thread does. What this sleeper has armed the others need not
    // watch: their peers are those that were there when they went to sleep.
    if (--sleepers_ != 0) {
      missed = ChangeBells([](std::atomic<uint32_t>& bell) {
        bell.fetch_or(kBellSocket, std::memory_order_seq_cst);
      });
    } else if (!ticking_) {
      missed = Arm();
    }
    missed = missed && !ticking_;
    ticking_ |= missed;
  }
  if (missed) ticker_->Start();
}

}  // namespace viaduct::verbs::shm
