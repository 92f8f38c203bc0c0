// Sleeping until somebody rings.
//
// All threads that sleep do so on the bells of all peers, beside a word of their own. Who rings
// wakes one of them, which collects for everybody and sleeps again unless its own word has changed:
// so a message wakes that one and whom it is for, however many sleep. It is the kernel that knows
// who sleeps, so a thread that a signal takes out of its sleep, for ever perhaps, keeps nobody from
// being woken; and who rings and wakes nobody asks for the control thread.
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

// How many futexes one wait takes: our own alone where the kernel (before 5.16) or a filter of
// system calls, which may come later, has no futex_waitv.
constinit std::atomic<int> wait_entries{kMaxFutexes};

// Of one wait, and no word about others: also for want of memory, and where the last link of a peer
// that has died went with its futex.
bool IsEndOfWait(int error) {
  return error == EAGAIN || error == EINTR || error == ETIMEDOUT || error == ENOMEM ||
         error == EFAULT;
}

enum class Rest { kRung, kTimedOut, kInterrupted, kFailed };

// Behind a handler with SA_RESTART the kernel goes on waiting, time-out or not.
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
        // Too many peers for one wait: the control thread passes it on.
        bell.exchange(kBellSocket, std::memory_order_seq_cst);
        return;
      }
      // Mostly another sleeper has armed it.
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
    // What rang may have been for others, without end.
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
    // Whoever left marks meanwhile has rung already and does not ring again. The caller may not
    // look any more, so the control thread does.
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
