// One thread at a time.
#ifndef VIADUCT_VIPL_TURN_H_
#define VIADUCT_VIPL_TURN_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace viaduct::vipl {

// Lets one thread at a time begin a connection of a VI, or change its attributes; the rest finds it
// pending, or waits for the change. Any thread.
class Turns {
 public:
  enum class Use { kConnect, kChange };
  // Whether the VI is Idle.
  using Idle = absl::FunctionRef<bool()>;

  // False: another thread has it to connect. One that changes something, or whose attempt is over,
  // is on its way out and is waited for, unless it is this one, interrupted by the handler that
  // calls.
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
    // The next holder is nobody until it says so.
    holder_.store(pthread_t{}, std::memory_order_relaxed);
    const uint32_t last = turn_.load(std::memory_order_relaxed) | kPhases;
    turn_.store(last + 1, std::memory_order_release);
    turn_.notify_all();
  }
  // The thread that has the turn begins its attempt.
  void Begin() { Move(kTaken, kBegun); }
  // It has begun: from now on a VI that is Idle says that it is over.
  void Started() { Move(kBegun, kStarted); }
  // The attempt that was begun, if one was, is over.
  void End() {
    if (!Move(kBegun, kEnded)) Move(kStarted, kEnded);
  }

 private:
  // In the low bits; those above count turns, so that nobody takes the next one for that which he
  // has seen.
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

// Tries to take a turn, and gives it back.
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
