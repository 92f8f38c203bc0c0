// The executor of a real process, as the wires see it: tasks and timers, and beside them
// descriptors, a slow tick and the news of the exit.
//
// Handlers, ticks and tasks run on the one thread of the loop, one at a time, with no lock held.
#ifndef VIADUCT_VERBS_BASE_EVENT_LOOP_H_
#define VIADUCT_VERBS_BASE_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "verbs/base/executor.h"

namespace viaduct::verbs {

// When a ticker's function wants to be called again.
enum class NextTick : uint8_t {
  kNever,
  kSoon,  // in about a millisecond
  kLate,  // in about sixteen
};

// A function called again and again while it wants to be. Made by EventLoop::NewTicker.
// Destruction off the loop waits for a call in progress; inside the function itself it is legal.
class Ticker {
 public:
  virtual ~Ticker() = default;
  // A call comes in about a millisecond, and others until one returns kNever. What the caller
  // stored in an atomic before Start is seen by a call that comes after it. Any thread; while a
  // call is to come so soon already this is a fence and a load, else a wake-up of the loop.
  virtual void Start() = 0;
  // The same, but in about sixteen milliseconds, unless one is to come sooner; while any is to come
  // this is a fence and a load.
  virtual void StartLate() = 0;
};

class EventLoop : public Executor {
 public:
  using FdHandler = std::function<void(uint32_t events)>;
  using ExitHook = void (*)(EventLoop& loop);
  static constexpr int kMostExitHooks = 8;

  // Runs `task` on the loop, behind every task posted before, and returns when it has run; on the
  // loop itself at once. Needs no memory: it is for what ends. Any thread.
  virtual void RunAndWait(absl::FunctionRef<void()> task) = 0;

  // Calls `handler` with epoll's event bits whenever some of `events` are there (EPOLLET and
  // EPOLLONESHOT as epoll has them). AlreadyExists: `fd` is watched; other errors of epoll_ctl as
  // they come. The descriptor stays the caller's; it is unwatched before it is closed. Any thread.
  virtual absl::Status Watch(int fd, uint32_t events, FdHandler handler) = 0;
  // Changes the events of a watched descriptor and re-arms EPOLLONESHOT. Any thread.
  virtual void SetEvents(int fd, uint32_t events) = 0;
  // After it returned the handler is not called again, and off the loop it is not running either.
  // The handler itself may unwatch its descriptor. No effect if `fd` is not watched.
  virtual void Unwatch(int fd) = 0;

  // Not started.
  virtual std::unique_ptr<Ticker> NewTicker(std::function<NextTick()> tick) = 0;

  // Runs `hook` when this process (not a forked child) leaves by exit(), quick_exit() or return
  // from main, after the program's own handlers: to tell peers that this is no crash. Its threads
  // may still run. exit() waits for the hooks, but no longer than a second: on a busy machine the
  // loop's turn comes late, and without the hooks every exit looks like a crash. For ever, and once
  // however often it is said: one for each subsystem, kMostExitHooks at the most.
  //
  // A hook runs on the loop. Where that does not come to it in time, it runs on the thread that
  // exits, and perhaps on the loop as well: a signal handler that calls exit() may have interrupted
  // a call that holds the very lock for which the loop waits. So a hook waits for no lock.
  virtual void OnExit(ExitHook hook) = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_EVENT_LOOP_H_
