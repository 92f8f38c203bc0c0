// Looks after completion queues that nobody polls: it serves the peers' one-sided requests, calls
// completion sinks, and cools what has fallen silent. One per context; runs on its executor.
//
// While something is hot it runs every kTick; otherwise not at all, until an arrival or a
// completion urges it.
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

  // Looks at `queue` soon, and then at every tick as long as it is hot; `now`: without waiting for
  // the tick that is due. Any thread, any lock.
  void Schedule(SoftCompletionQueue& queue, bool now = false);
  // `queue` is being destroyed. Off the executor waits for a look at it.
  void Forget(SoftCompletionQueue& queue);

 private:
  void Run();
  static void Unlink(SoftCompletionQueue** list, SoftCompletionQueue& queue);

  Executor& executor_;
  const std::shared_ptr<Anchor<&Attendant::Run, Attendant>> anchor_;
  SpinLock lock_;
  SoftCompletionQueue* listed_ ABSL_GUARDED_BY(lock_) = nullptr;   // for the next run
  SoftCompletionQueue* batch_ ABSL_GUARDED_BY(lock_) = nullptr;    // of this run, still to do
  SoftCompletionQueue* current_ ABSL_GUARDED_BY(lock_) = nullptr;  // being looked at
  bool urgent_ ABSL_GUARDED_BY(lock_) = false;         // the next run need not wait for a tick
  bool scheduled_ ABSL_GUARDED_BY(lock_) = false;      // Run will come, or runs
  Executor::TimerId tick_ ABSL_GUARDED_BY(lock_) = 0;  // by which it comes
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_ATTENDANT_H_
