// Turns: one thread at a time connects a VI or changes its attributes.
#ifndef VIADUCT_VIPL_TURN_H_
#define VIADUCT_VIPL_TURN_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace viaduct::vipl {

// Lets one thread at a time begin a connection of a VI, or change its attributes. The other threads
// find a connection pending, or wait for the change. Any thread.
class Turns {
 public:
  enum class Use { kConnect, kChange };
  // Whether the VI is Idle.
  using Idle = absl::FunctionRef<bool()>;

  // False: another thread holds the turn to connect. A holder that changes attributes, or whose
  // attempt is over, is about to give the turn back, so Take waits for it; but it returns false if
  // the holder is this thread, interrupted by the signal handler that makes this call (not in the
  // instant in which it has taken the turn, though).
  bool Take(Use use, Idle idle) {
    for (;;) {
      uint32_t seen = turn_.load(std::memory_order_acquire);
      if (PhaseOf(seen) == kFree) {
        const uint32_t taken = seen | (use == Use::kChange ? kChanging : kTaken);
        if (!turn_.compare_exchange_strong(seen, taken, std::memory_order_acquire)) continue;
        holder_.store(pthread_self(), std::memory_order_relaxed);
        return true;
      }
      if (pthread_equal(holder_.load(std::memory_order_relaxed), pthread_self())) return false;
      if (!Leaves(PhaseOf(seen), idle)) return false;
      turn_.wait(seen, std::memory_order_acquire);
    }
  }
  void GiveBack() {
    const uint32_t last = turn_.load(std::memory_order_relaxed) | kPhases;
    turn_.store(last + 1, std::memory_order_release);
    // There is no holder until the next one stores itself here, unless it has already.
    pthread_t self = pthread_self();
    holder_.compare_exchange_strong(self, pthread_t{}, std::memory_order_relaxed);
    turn_.notify_all();
  }
  // The holder is about to start its attempt.
  void Begin() { Move(kTaken, kBegun); }
  // The attempt has started: from now on an Idle VI means that it is over.
  void Started() { Move(kBegun, kStarted); }
  // The attempt, if one was begun, is over.
  void End() {
    if (!Move(kBegun, kEnded)) Move(kStarted, kEnded);
  }

 private:
  // The phase is in the low bits. The bits above count turns, so that a waiter does not mistake the
  // next turn for the one that it has seen.
  enum : uint32_t { kFree, kTaken, kBegun, kStarted, kEnded, kChanging, kPhases = 7 };

  static uint32_t PhaseOf(uint32_t turn) { return turn & kPhases; }
  static bool Leaves(uint32_t phase, Idle idle) {
    return phase == kEnded || phase == kChanging || (phase == kStarted && idle());
  }
  bool Move(uint32_t from, uint32_t to) {
    uint32_t seen = turn_.load(std::memory_order_relaxed);
    return PhaseOf(seen) == from &&
           turn_.compare_exchange_strong(seen, seen - from + to, std::memory_order_release);
  }

  std::atomic<uint32_t> turn_{kFree};
  std::atomic<pthread_t> holder_{0};
};

// Tries to take a turn, and gives it back at the end of its scope.
class Turn {
 public:
  Turn(Turns* turns, Turns::Use use, Turns::Idle idle)
      : turns_(turns->Take(use, idle) ? turns : nullptr) {}
  ~Turn() {
    if (turns_ != nullptr) turns_->GiveBack();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_mine() const { return turns_ != nullptr; }

 private:
  Turns* const turns_;
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_TURN_H_
