#include "verbs/rdma/aside.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/clock.h"
#include "verbs/base/engine_thread.h"
#include "verbs/base/futex.h"
#include "verbs/base/lock.h"
#include "verbs/rdma/patience.h"

namespace viaduct::verbs::rdma {
namespace {

// In a stack of the default size the kernel clears a whole huge page for the first few bytes.
constexpr size_t kStack = 1 << 20;

class Threads {
 public:
  bool Run(PreparedTask& task) {
    if (!Queue(task)) return Start(task);
    FutexWake(posted_, 1);
    return true;
  }

 private:
  // False: each idle thread already has a task on its way to it.
  bool Queue(PreparedTask& task) {
    MutexLock lock(&mutex_);
    if (idle_ == tasks_waiting_) return false;
    tasks_.Append(task);
    ++tasks_waiting_;
    posted_.fetch_add(1);
    return true;
  }

  static bool Start(PreparedTask& task);
  static void* Main(void* first);

  // Null: the thread has waited long enough and must end.
  PreparedTask* Next() {
    const Deadline end = Deadline::At(MonotonicNow() + kAsideRest);
    MutexLock lock(&mutex_);
    ++idle_;
    bool waited = false;
    while (tasks_waiting_ == 0 && !waited) waited = !Sleep(end);
    --idle_;
    if (tasks_waiting_ == 0) return nullptr;
    --tasks_waiting_;
    return tasks_.TakeFirst();
  }

  // False: it has slept until `end`.
  bool Sleep(Deadline end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint32_t posted = posted_.load();
    mutex_.Unlock();
    const FutexResult result = FutexWait(posted_, posted, end);
    mutex_.Lock();
    return result != FutexResult::kTimedOut;
  }

  Mutex mutex_;
  TaskList tasks_ ABSL_GUARDED_BY(mutex_);
  // Never more than idle_: for each waiting task an idle thread is on its way.
  size_t tasks_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint32_t> posted_{0};
};

constinit Threads threads;

void* Threads::Main(void* first) {
  pthread_setname_np(pthread_self(), "viaduct-aside");
  auto* task = static_cast<PreparedTask*>(first);
  for (; task != nullptr; task = threads.Next()) task->Run();
  return nullptr;
}

bool Threads::Start(PreparedTask& task) { return StartEngineThread(&Main, &task, kStack) == 0; }

}  // namespace

bool RunAside(PreparedTask& task) { return threads.Run(task); }

}  // namespace viaduct::verbs::rdma
