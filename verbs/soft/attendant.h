// Looks after completion queues that nobody polls: it serves the peers' one-sided requests, calls
// completion sinks, and cools queue pairs that have fallen silent. One per context; runs on its
// executor.
//
// It runs every kTick while a queue pair is hot; otherwise it does not run until an arrival or a
// completion schedules it.
#ifndef VIADUCT_VERBS_SOFT_ATTENDANT_H_
#define VIADUCT_VERBS_SOFT_ATTENDANT_H_

#include <memory>

#include "verbs/base/anchor.h"
#include "verbs/base/executor.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs {

class SoftCompletionQueue;

class Attendant {
 public:
  static constexpr Nanos kTick = kNanosPerMilli;

  explicit Attendant(Executor& executor);
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // Attends to `queue` soon, and then at every tick while it has hot pairs. `now`: without waiting
  // for the tick that is due. Any thread, under any lock.
  void Schedule(SoftCompletionQueue& queue, bool now = false);
  // `queue` is being destroyed. Off the executor, waits for a call of its Attend in progress.
  void Forget(SoftCompletionQueue& queue);

 private:
  void Run();
  static void Unlink(SoftCompletionQueue** list, SoftCompletionQueue& queue);

  Executor& executor_;
  const std::shared_ptr<Anchor<&Attendant::Run, Attendant>> anchor_;
  SpinLock lock_;
  SoftCompletionQueue* listed_ ABSL_GUARDED_BY(lock_) = nullptr;   // for the next run
  SoftCompletionQueue* batch_ ABSL_GUARDED_BY(lock_) = nullptr;    // of this run, still to do
  SoftCompletionQueue* current_ ABSL_GUARDED_BY(lock_) = nullptr;  // being attended to
  bool urgent_ ABSL_GUARDED_BY(lock_) = false;         // the next run need not wait for a tick
  bool scheduled_ ABSL_GUARDED_BY(lock_) = false;      // Run is due, or running
  Executor::TimerId tick_ ABSL_GUARDED_BY(lock_) = 0;  // the timer that will call it
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_ATTENDANT_H_
