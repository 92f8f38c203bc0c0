// The lock of the data path whose holders can be waited out.
//
// A thread that withdraws something that holders of the lock read (a region's key) clears it and
// calls Pass(). When Pass returns, everybody who might still use the old value has released the
// lock. Unlike taking the lock, Pass cannot be starved by a thread that polls in a loop, and it
// does not delay that thread.
#ifndef VIADUCT_VERBS_BASE_PASS_LOCK_H_
#define VIADUCT_VERBS_BASE_PASS_LOCK_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/back_off.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs {

// A spinlock like SpinLock, but its word counts: odd while held, different each time it is held.
// The locked exchange makes the odd value visible before the holder's first read.
class ABSL_LOCKABLE PassLock {
 public:
  PassLock() = default;
  PassLock(const PassLock&) = delete;
  PassLock& operator=(const PassLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (waiters_.load(std::memory_order_relaxed) != 0 || !TryLock()) [[unlikely]]
      LockBehindOthers();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    uint32_t word = word_.load(std::memory_order_relaxed);
    return (word & 1) == 0 &&
           word_.compare_exchange_strong(word, word + 1, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    word_.store(word_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Returns when every holder that may have missed the caller's earlier stores has released the
  // lock. The caller must not hold it.
  void Pass() {
    // A read-modify-write, so that the next holder is ordered after it (ThreadSanitizer knows no
    // fences).
    const uint32_t seen = word_.fetch_add(0, std::memory_order_seq_cst);
    if ((seen & 1) == 0) return;
    BackOff back_off;
    while (word_.load(std::memory_order_acquire) == seen) back_off.Pause();
  }

 private:
  // A thread that polls in a loop holds the lock nearly always, also when it is preempted. So it
  // lets waiting threads go first, once.
  [[gnu::noinline]] void LockBehindOthers() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    int spins = 0;
    while (waiters_.load(std::memory_order_relaxed) != 0 && spins++ < BackOff::kSpins) Relax();
    if (spins > BackOff::kSpins) sched_yield();
    waiters_.fetch_add(1, std::memory_order_relaxed);
    for (BackOff back_off; !TryLock(); back_off.Pause()) {
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> waiters_{0};  // in LockBehindOthers
};

using PassLockHolder = BasicLock<PassLock>;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_PASS_LOCK_H_
