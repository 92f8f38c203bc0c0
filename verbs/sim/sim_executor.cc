#include "verbs/sim/sim_executor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace viaduct::verbs {
namespace {

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "simulation: %s\n", what);
  std::abort();
}

class SimParker final : public Parker {
 public:
  explicit SimParker(SimExecutor* executor) : executor_(executor) {}

  ParkResult Park(Deadline deadline) override {
    if (!executor_->RunUntil([this] { return token_; }, deadline)) {
      // No event is left that could wake it.
      if (deadline.infinite()) Die("a thread parks for ever");
      return ParkResult::kTimedOut;
    }
    token_ = false;
    return ParkResult::kUnparked;
  }
  void Unpark() override { token_ = true; }

 private:
  SimExecutor* const executor_;
  bool token_ = false;
};

}  // namespace

Executor::TimerId SimExecutor::RunAt(Nanos when, Task task) {
  when = std::max(when, now_);
  const TimerId id = ++last_;
  events_.emplace(std::make_pair(when, id), std::move(task));
  times_.emplace(id, when);
  return id;
}

bool SimExecutor::Cancel(TimerId timer) {
  const auto it = times_.find(timer);
  if (it == times_.end()) return false;
  const auto event = events_.find(std::make_pair(it->second, timer));
  Task task = std::move(event->second);  // destroyed once the tables are consistent again
  events_.erase(event);
  times_.erase(it);
  return true;
}

void SimExecutor::Drain() {
  if (running_) return;
  const TimerId last = last_;
  while (!events_.empty() && events_.begin()->first.first <= now_ &&
         events_.begin()->first.second <= last) {
    Step();
  }
}

std::unique_ptr<Parker> SimExecutor::NewParker() { return std::make_unique<SimParker>(this); }

bool SimExecutor::Step() {
  if (running_) Die("an event waits for other events");
  const auto first = events_.begin();
  if (first == events_.end()) return false;
  now_ = first->first.first;
  Task task = std::move(first->second);
  times_.erase(first->first.second);
  events_.erase(first);
  running_ = true;
  task();
  task = nullptr;
  running_ = false;
  return true;
}

bool SimExecutor::RunUntil(absl::FunctionRef<bool()> done, Deadline deadline) {
  for (;;) {
    if (done()) return true;
    const bool none_in_time =
        events_.empty() || (!deadline.infinite() && events_.begin()->first.first > deadline.at());
    if (none_in_time) {
      if (!deadline.infinite()) now_ = std::max(now_, deadline.at());
      return false;
    }
    Step();
  }
}

}  // namespace viaduct::verbs
