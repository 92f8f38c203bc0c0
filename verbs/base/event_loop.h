// The executor of a real process, as the wires see it: tasks and timers, and also descriptors, a
// slow tick and hooks that run at exit.
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

// A function that is called again and again while it asks for it. Made by EventLoop::NewTicker.
// Destruction off the loop waits for a call in progress; inside the function itself it is legal.
class Ticker {
 public:
  virtual ~Ticker() = default;
  // The function is called in about a millisecond, and again until it returns kNever. A call after
  // Start sees what the caller stored in an atomic before Start. Any thread. Costs a fence and a
  // load while a call is due that soon already, else a wake-up of the loop.
  virtual void Start() = 0;
  // The same, but in about sixteen milliseconds, unless a call is due sooner. Costs a fence and a
  // load while any call is due.
  virtual void StartLate() = 0;
};

class EventLoop : public Executor {
 public:
  using FdHandler = std::function<void(uint32_t events)>;
  using ExitHook = void (*)(EventLoop& loop);
  static constexpr int kMostExitHooks = 8;

  // Runs `task` on the loop, after every task posted before, and returns when it has run; called on
  // the loop itself, runs it at once. Needs no memory, since it serves destruction. Any thread.
  virtual void RunAndWait(absl::FunctionRef<void()> task) = 0;

  // Calls `handler` with epoll's event bits whenever some of `events` are there (EPOLLET and
  // EPOLLONESHOT as epoll has them). AlreadyExists: `fd` is watched already; other errors are those
  // of epoll_ctl. The caller keeps the descriptor and unwatches it before closing it. Any thread.
  virtual absl::Status Watch(int fd, uint32_t events, FdHandler handler) = 0;
  // Changes the events of a watched descriptor and re-arms EPOLLONESHOT. Any thread.
  virtual void SetEvents(int fd, uint32_t events) = 0;
  // Once this has returned the handler is not called again, and off the loop it is not running
  // either. The handler itself may unwatch its descriptor. No effect if `fd` is not watched.
  virtual void Unwatch(int fd) = 0;

  // The new ticker is not started.
  virtual std::unique_ptr<Ticker> NewTicker(std::function<NextTick()> tick) = 0;

  // Runs `hook` when this process (not a forked child) leaves by exit(), quick_exit() or return
  // from main, after the program's own handlers: to tell peers that this is no crash. The program's
  // threads may still run. exit() waits for the hooks, since without them every exit looks like a
  // crash, but no longer than a second: on a busy machine the loop's turn comes late. A hook stays
  // for ever, and runs once however often it is given. One per subsystem, kMostExitHooks at most.
  //
  // A hook runs on the loop. If the loop does not get to it in time, it runs on the exiting thread,
  // and perhaps on the loop as well: a signal handler that calls exit() may have interrupted a call
  // that holds the very lock for which the loop waits. So a hook waits for no lock.
  virtual void OnExit(ExitHook hook) = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_EVENT_LOOP_H_
