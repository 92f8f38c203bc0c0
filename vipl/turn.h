// One thread at a time.
#ifndef VIADUCT_VIPL_TURN_H_
#define VIADUCT_VIPL_TURN_H_

#include <pthread.h>

#include <atomic>

namespace viaduct::vipl {

// Lets one thread at a time begin a connection of a VI, or change its attributes; the rest finds it
// pending, or waits for the change. Any thread.
class Turns {
 public:
  enum class Use { kConnect, kChange };

  // False: another thread has it to connect. One that changes something, or whose attempt has been
  // ended, is on its way out and is waited for, unless it is this one, interrupted by the handler
  // that calls.
  bool Take(Use use) {
    for (;;) {
      int seen = kFree;
      if (turn_.compare_exchange_strong(seen, use == Use::kChange ? kChanging : kTaken,
                                        std::memory_order_acquire)) {
        holder_.store(pthread_self(), std::memory_order_relaxed);
        return true;
      }
      if (seen != kEnded && seen != kChanging) return false;
      if (pthread_equal(holder_.load(std::memory_order_relaxed), pthread_self())) return false;
      turn_.wait(seen, std::memory_order_acquire);
    }
  }
  void GiveBack() {
    // The next holder is nobody until it says so.
    holder_.store(pthread_t{}, std::memory_order_relaxed);
    const int was = turn_.exchange(kFree, std::memory_order_release);
    if (was == kEnded || was == kChanging) turn_.notify_all();
  }
  // The thread that has the turn begins its attempt.
  void Begin() { turn_.store(kBegun, std::memory_order_relaxed); }
  // The attempt that was begun, if one was, is over.
  void End() {
    int seen = kBegun;
    turn_.compare_exchange_strong(seen, kEnded, std::memory_order_relaxed);
  }

 private:
  enum : int { kFree, kTaken, kBegun, kEnded, kChanging };
  std::atomic<int> turn_{kFree};
  std::atomic<pthread_t> holder_{0};
};

// Tries to take a turn, and gives it back.
class Turn {
 public:
  explicit Turn(Turns* turns, Turns::Use use = Turns::Use::kConnect)
      : turns_(turns->Take(use) ? turns : nullptr) {}
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
