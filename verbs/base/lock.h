// The two kinds of lock, under clang's thread-safety analysis.
//
// Mutex: control path; may be held across an allocation, never across a callback or a wait.
// SpinLock: one direction of one queue on the data path; held for nanoseconds, but in an iWARP link
// for as long as TCP takes its bytes (64 batches at the most).
// absl::Mutex is not used: ThreadSanitizer cannot see into the distribution's build of it.
#ifndef VIADUCT_VERBS_BASE_LOCK_H_
#define VIADUCT_VERBS_BASE_LOCK_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "verbs/base/back_off.h"

namespace viaduct::verbs {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

// Test-and-set. Release is a plain store, which is what makes it cheaper than a mutex here.
class ABSL_LOCKABLE SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (word_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
      LockBehindOthers();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { word_.store(0, std::memory_order_release); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return word_.load(std::memory_order_relaxed) == 0 &&
           word_.exchange(1, std::memory_order_acquire) == 0;
  }

 private:
  [[gnu::noinline]] void LockBehindOthers() {
    BackOff back_off;
    do {
      while (word_.load(std::memory_order_relaxed) != 0) back_off.Pause();
    } while (word_.exchange(1, std::memory_order_acquire) != 0);
  }

  std::atomic<uint32_t> word_{0};
};

template <typename Lockable>
class ABSL_SCOPED_LOCKABLE BasicLock {
 public:
  explicit BasicLock(Lockable* lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock) : lock_(lock) {
    lock_->Lock();
  }
  ~BasicLock() ABSL_UNLOCK_FUNCTION() { lock_->Unlock(); }
  BasicLock(const BasicLock&) = delete;
  BasicLock& operator=(const BasicLock&) = delete;

 private:
  Lockable* const lock_;
};

using MutexLock = BasicLock<Mutex>;
using SpinLockHolder = BasicLock<SpinLock>;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_LOCK_H_
