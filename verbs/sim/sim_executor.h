// The executor of a simulation: one thread, a virtual clock, events in one total order.
//
// Time passes only between events. A call that would sleep runs the simulation instead: parkers,
// completion queues (SimDoorbell) and Drain run one event after the other until they may return.
// Events of the same instant run in the order in which they were posted, so that a run depends on
// nothing but the program and the seed of its network.
//
// Not thread-safe: a simulation belongs to one thread.
#ifndef VIADUCT_VERBS_SIM_SIM_EXECUTOR_H_
#define VIADUCT_VERBS_SIM_SIM_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "verbs/base/executor.h"
#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

class SimExecutor final : public Executor {
 public:
  SimExecutor() = default;
  SimExecutor(const SimExecutor&) = delete;
  SimExecutor& operator=(const SimExecutor&) = delete;

  Nanos Now() const override { return now_; }
  void Post(Task task) override { RunAt(now_, std::move(task)); }
  // May take memory: a simulation has enough.
  bool Post(PreparedTask& task) override {
    RunAt(now_, [&task] { task.Run(); });
    return true;
  }
  TimerId RunAt(Nanos when, Task task) override;
  bool Cancel(TimerId timer) override;
  // True while an event runs.
  bool OnExecutor() const override { return running_; }
  void Drain() override;
  std::unique_ptr<Parker> NewParker() override;

  // Sets the clock to the time of the next event and runs it. False: there is none. Not inside an
  // event.
  bool Step();
  // Runs events until `done` returns true; it is called first and after each event. False: the
  // clock has reached the deadline, or nothing is left to run and the deadline is infinite.
  bool RunUntil(absl::FunctionRef<bool()> done, Deadline deadline);

 private:
  Nanos now_ = 0;
  TimerId last_ = 0;
  bool running_ = false;
  std::map<std::pair<Nanos, TimerId>, Task> events_;
  absl::flat_hash_map<TimerId, Nanos> times_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SIM_SIM_EXECUTOR_H_
