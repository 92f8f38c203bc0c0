// Where the engine's own work runs: connection managers, timers, events from devices.
//
// The real one is the control thread of the process (control_thread.h); the simulation has one
// with a virtual clock. The engine above verbs/ knows only this interface.
#ifndef VIADUCT_VERBS_BASE_EXECUTOR_H_
#define VIADUCT_VERBS_BASE_EXECUTOR_H_

#include <functional>
#include <memory>

#include "verbs/base/clock.h"
#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

enum class ParkResult {
  kUnparked,     // Unpark was called since the last Park returned
  kTimedOut,     // the deadline passed
  kInterrupted,  // a signal handler ran in this thread
};

// Lets one thread at a time sleep until another wakes it. An Unpark that comes first is kept
// (once). Thread cancellation strikes while parked where the thread allows it (cancellation.h).
class Parker {
 public:
  virtual ~Parker() = default;
  virtual ParkResult Park(Deadline deadline) = 0;
  virtual void Unpark() = 0;  // any thread; no system call unless somebody sleeps
};

class Executor : public Clock {
 public:
  using Task = std::function<void()>;
  // Never reused, never 0.
  using TimerId = uint64_t;

  // Runs `task` on the executor, after every task posted before it. Any thread.
  virtual void Post(Task task) = 0;
  // The same, but needs no memory. False: the task never runs, as in a forked child.
  virtual bool Post(PreparedTask& task) = 0;

  // Runs `task` on the executor at `when` or soon after. Any thread.
  virtual TimerId RunAt(Nanos when, Task task) = 0;

  // After true the task never runs. False: it has run, or is running now on the executor.
  virtual bool Cancel(TimerId timer) = 0;

  // True on the thread that runs tasks.
  virtual bool OnExecutor() const = 0;

  // Returns when every task posted before this call has run. Not on the executor itself, where
  // it returns at once.
  virtual void Drain() = 0;

  // For a caller that polls in vain, perhaps for something that the executor is working on: if the
  // executor waits for the caller's processor, it gets it first. Any thread; no system call while
  // the executor sleeps.
  virtual void GiveWay() {}

  virtual std::unique_ptr<Parker> NewParker() = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_EXECUTOR_H_
