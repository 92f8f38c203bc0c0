// The line of those for whom a shared receive queue has nothing: who is the next to take a receive.
//
// Who finds nothing enters at the back. For each receive that is posted the oldest is woken, and
// the receive is kept for it until it comes. One that does not come in time is late: its receive is
// kept for the next one, and it takes whatever is there when it comes, or else goes to the front.
//
// Always: no more are woken than there are receives; where somebody waits, as many. WakeNext,
// called until it gives nobody after each Expire and Leave and each receive that is posted, keeps
// the second half.
//
// Not thread-safe, but for Waiter::MayTake.
#ifndef VIADUCT_VERBS_SOFT_RECEIVE_LINE_H_
#define VIADUCT_VERBS_SOFT_RECEIVE_LINE_H_

#include <atomic>
#include <cstdint>

#include "verbs/base/clock.h"

namespace viaduct::verbs {

class ReceiveLine {
  enum class State : uint8_t { kAway, kWaiting, kWoken, kLate };

 public:
  // For so long a receive is kept for who was woken: longer than the attendant takes to look.
  static constexpr Nanos kPatience = 2 * kNanosPerMilli;

  // One place in a line. Leave comes before its end.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    // Is it worth its while to come, if there are receives? Any thread: may be old for a moment,
    // but not for who was woken.
    bool MayTake() const { return state_.load(std::memory_order_relaxed) != State::kWaiting; }

   private:
    friend class ReceiveLine;
    State state() const { return state_.load(std::memory_order_relaxed); }

    std::atomic<State> state_{State::kAway};
    Waiter* next_ = nullptr;  // in waiting_ or woken_
    Waiter* previous_ = nullptr;
    Nanos woken_at_ = 0;
  };

  ReceiveLine() = default;
  ReceiveLine(const ReceiveLine&) = delete;
  ReceiveLine& operator=(const ReceiveLine&) = delete;

  // Nobody waits, was woken or is late: who comes may take.
  bool empty() const { return count_ == 0; }

  // `available` receives are there. True: it takes one of them, and is in the line no more.
  bool Take(Waiter& waiter, uint32_t available);
  // It waits, who must not take.
  void Enter(Waiter& waiter);
  // It has no use for a receive any more.
  void Leave(Waiter& waiter);
  // Null: nobody waits, or each of the `available` receives is kept for somebody.
  Waiter* WakeNext(uint32_t available, Nanos now);
  // Nothing is kept any longer for who was woken kPatience before `now`, or earlier.
  void Expire(Nanos now);
  // When Expire has to be called, because somebody waits behind one who was woken; else kNever.
  static constexpr Nanos kNever = INT64_MAX;
  Nanos expiry() const;

 private:
  struct List {
    Waiter* first = nullptr;
    Waiter* last = nullptr;
    void PushFront(Waiter& waiter);
    void PushBack(Waiter& waiter);
    void Remove(Waiter& waiter);
  };
  void Set(Waiter& waiter, State state) { waiter.state_.store(state, std::memory_order_relaxed); }
  void RemoveWoken(Waiter& waiter);

  uint32_t count_ = 0;  // of all that are not away
  uint32_t woken_count_ = 0;
  List waiting_;  // the oldest first
  List woken_;    // who was woken first, first
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_RECEIVE_LINE_H_
