// Looks after completion queues that nobody polls: it serves the peers' one-sided requests, calls
// completion sinks, and cools what has fallen silent. One per context; runs on its executor.
//
// While something is hot it runs every kTick; otherwise not at all: the doorbell is parked and
// calls Run when something arrives.
#ifndef VIADUCT_VERBS_SOFT_ATTENDANT_H_
#define VIADUCT_VERBS_SOFT_ATTENDANT_H_

#include "verbs/base/executor.h"
#include "verbs/base/lock.h"
#include "verbs/soft/doorbell.h"

namespace viaduct::verbs {

class SoftCompletionQueue;

class Attendant {
 public:
  static constexpr Nanos kTick = 1'000'000;

  Attendant(Executor& executor, Doorbell& doorbell);
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // Soon looks at `queue`, and again at every tick as long as it is hot. Any thread, any lock.
  void Urge(SoftCompletionQueue& queue);
  // `queue` is being destroyed.
  void Forget(SoftCompletionQueue& queue);
  // The doorbell rang: collects and looks. Executor.
  void Run();

 private:
  void Schedule(Nanos delay);

  Executor& executor_;
  Doorbell& doorbell_;
  SpinLock lock_;
  SoftCompletionQueue* first_ ABSL_GUARDED_BY(lock_) = nullptr;
  bool scheduled_ ABSL_GUARDED_BY(lock_) = false;
  struct State;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_ATTENDANT_H_
