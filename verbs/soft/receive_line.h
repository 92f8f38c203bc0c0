// The line of waiters of an empty shared receive queue: it decides who takes the next receive.
//
// A waiter that finds no receive enters at the back. For each receive that is posted, the oldest
// waiter is woken, and the receive is kept for it until it comes. A waiter that does not come in
// time is late: its receive is then kept for the next one. A late waiter takes any receive that is
// there when it comes; if there is none, it goes to the front.
//
// Invariant: no more waiters are woken than there are receives; if anybody waits, as many are. The
// caller maintains the second half: it calls WakeNext until that returns null, after each Expire,
// each Leave and each receive that is posted.
//
// Not thread-safe, except for Waiter::MayTake.
#ifndef VIADUCT_VERBS_SOFT_RECEIVE_LINE_H_
#define VIADUCT_VERBS_SOFT_RECEIVE_LINE_H_

#include <atomic>
#include <cstdint>

#include "verbs/base/clock.h"

namespace viaduct::verbs {

class ReceiveLine {
  enum class State : uint8_t { kAway, kWaiting, kWoken, kLate };

 public:
  // How long a receive is kept for a woken waiter: longer than the attendant takes to serve it.
  static constexpr Nanos kPatience = 2 * kNanosPerMilli;

  // One place in a line. It must Leave before its destruction.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    // Is it worth calling Take, if there are receives? Any thread: may be out of date for a moment,
    // but not for a woken waiter.
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

  // Nobody waits, was woken or is late: anybody may take a receive.
  bool empty() const { return count_ == 0; }

  // `available` receives are there. True: `waiter` takes one of them and is no longer in the line.
  bool Take(Waiter& waiter, uint32_t available);
  // `waiter`, which Take has refused, waits from now on.
  void Enter(Waiter& waiter);
  // `waiter` has no use for a receive any more.
  void Leave(Waiter& waiter);
  // Wakes the first waiter. Null: nobody waits, or each of the `available` receives is kept for
  // somebody.
  Waiter* WakeNext(uint32_t available, Nanos now);
  // Waiters that were woken at `now` - kPatience or earlier are late from now on.
  void Expire(Nanos now);
  // When Expire has to be called, because somebody waits behind a woken waiter; otherwise kNever.
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

  uint32_t count_ = 0;  // of all waiters that are not kAway
  uint32_t woken_count_ = 0;
  List waiting_;  // the oldest first
  List woken_;    // in the order in which they were woken
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_RECEIVE_LINE_H_
