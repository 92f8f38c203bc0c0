// One thread at a time.
#ifndef VIADUCT_VIPL_TURN_H_
#define VIADUCT_VIPL_TURN_H_

#include <pthread.h>

#include <atomic>

namespace viaduct::vipl {

// Lets one thread at a time begin a connection of a VI; the rest finds it pending. Any thread.
class Turns {
 public:
  // False: another thread has it. One whose attempt has been ended is on its way out and is waited
  // for, unless it is this one, interrupted by the handler that calls.
  bool Take() {
    for (;;) {
      int seen = kFree;
      if (turn_.compare_exchange_strong(seen, kTaken, std::memory_order_acquire)) {
        holder_.store(pthread_self(), std::memory_order_relaxed);
        return true;
      }
      if (seen != kEnded) return false;
      if (pthread_equal(holder_.load(std::memory_order_relaxed), pthread_self())) return false;
      turn_.wait(kEnded, std::memory_order_acquire);
    }
  }
  void GiveBack() {
    if (turn_.exchange(kFree, std::memory_order_release) == kEnded) turn_.notify_all();
  }
  // The thread that has the turn begins its attempt.
  void Begin() { turn_.store(kBegun, std::memory_order_relaxed); }
  // The attempt that was begun, if one was, is over.
  void End() {
    int seen = kBegun;
    turn_.compare_exchange_strong(seen, kEnded, std::memory_order_relaxed);
  }

 private:
  enum : int { kFree, kTaken, kBegun, kEnded };
  std::atomic<int> turn_{kFree};
  std::atomic<pthread_t> holder_{0};
};

// Tries to take a turn, and gives it back.
class Turn {
 public:
  explicit Turn(Turns* turns) : turns_(turns->Take() ? turns : nullptr) {}
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
