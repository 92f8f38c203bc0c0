// Sleeping until somebody rings.
//
// Every sleeping thread waits on the bells of all peers and on a word of its own. A peer that rings
// wakes up one thread, which collects for everybody and sleeps again unless its own word has
// changed. So a message wakes up that thread and the one that it is for, however many sleep. The
// kernel knows who sleeps, so a thread that a signal takes out of its sleep, perhaps for ever,
// keeps nobody from being woken up. A peer that wakes up nobody asks for the control thread.
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

WaitEntry WhileOwn(std::atomic<uint32_t>& word, uint32_t seen) {
  return {seen, reinterpret_cast<uint64_t>(&word), kFutex32 | kFutexPrivate, 0};
}
WaitEntry WhileArmed(std::atomic<uint32_t>& bell) {
  return {kBellFutex, reinterpret_cast<uint64_t>(&bell), kFutex32, 0};
}

// How many futexes one wait takes: 1, our own, if the kernel (before 5.16) has no futex_waitv or a
// filter of system calls, which may come later, refuses it.
constinit std::atomic<int> wait_entries{kMaxFutexes};

// Does `error` concern one wait only, and say nothing about later ones? So do a lack of memory, and
// a futex that has gone with the last link of a dead peer.
bool IsEndOfWait(int error) {
  return error == EAGAIN || error == EINTR || error == ETIMEDOUT || error == ENOMEM ||
         error == EFAULT;
}

enum class Rest { kRung, kTimedOut, kInterrupted, kFailed };

// After a signal handler with SA_RESTART the kernel goes on waiting, time-out or not.
Rest SleepOn(const WaitEntry* entries, int count, Deadline deadline) {
  timespec until = {deadline.at() / kNanosPerSecond, deadline.at() % kNanosPerSecond};
  const long waited = SleepIn(SYS_futex_waitv, reinterpret_cast<long>(entries), count, 0,
                              reinterpret_cast<long>(&until), CLOCK_MONOTONIC, 0);
  if (waited >= 0 || errno == EAGAIN) return Rest::kRung;
  if (errno == ETIMEDOUT) return Rest::kTimedOut;
  if (errno == EINTR) return Rest::kInterrupted;
  if (!IsEndOfWait(errno)) wait_entries.store(1, std::memory_order_relaxed);
  return Rest::kFailed;
}

}  // namespace

WaitResult Host::Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  if (descent_.inherited()) return ToWaitResult(FutexWait(word, seen, deadline));
  {
    SpinLockHolder holder(&bell_lock_);
    ++sleepers_;
  }
  const absl::Cleanup leave = [this] { EndSleep(); };
  for (;;) {
    WaitEntry entries[kMaxFutexes];
    int count = 0;
    entries[count++] = WhileOwn(word, seen);
    const int most = wait_entries.load(std::memory_order_relaxed);
    const auto arm = [&entries, &count, most](std::atomic<uint32_t>& bell) {
      if (count >= most) {
        // Too many peers for one wait: the control thread passes their arrivals on.
        bell.exchange(kBellSocket, std::memory_order_seq_cst);
        return;
      }
      // Usually another sleeper has armed it already.
      if (bell.load(std::memory_order_seq_cst) != kBellFutex) {
        bell.exchange(kBellFutex, std::memory_order_seq_cst);
      }
      entries[count++] = WhileArmed(bell);
    };
    bool marks;
    {
      EpochGuard guard;
      SpinLockHolder holder(&bell_lock_);
      marks = ChangeBells(arm);
    }
    Rest rest = Rest::kRung;
    if (!marks) {
      if (count == 1) return ToWaitResult(FutexWait(word, seen, deadline));
      rest = SleepOn(entries, count, deadline);
    }
    Collect();
    if (rest == Rest::kTimedOut) return WaitResult::kTimedOut;
    if (rest == Rest::kInterrupted) return WaitResult::kInterrupted;
    // The rings may be for others, without end: check the deadline too.
    if (rest == Rest::kFailed || word.load(std::memory_order_seq_cst) != seen ||
        deadline.Passed(loop_)) {
      return WaitResult::kReady;
    }
  }
}

void Host::EndSleep() {
  bool missed = false;
  {
    EpochGuard guard;
    SpinLockHolder holder(&bell_lock_);
    // A peer that left marks meanwhile has rung already and does not ring again. The caller may not
    // poll any more, so the control thread collects.
    if (--sleepers_ != 0) {
      missed = ArmWhatIsOff(kBellFutex);
    } else if (!ticking_) {
      missed = Arm();
    }
    missed = missed && !ticking_;
    ticking_ |= missed;
  }
  if (missed) ticker_->Start();
}

}  // namespace viaduct::verbs::shm
