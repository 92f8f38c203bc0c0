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

// In a stack of the usual size the kernel clears a huge page for its first few bytes.
constexpr size_t kStack = 1 << 20;

class Threads {
 public:
  bool Run(PreparedTask& task) {
    if (!Queue(task)) return Start(task);
    FutexWake(posted_, 1);
    return true;
  }

 private:
  // False: no thread is idle that has nothing on its way to it.
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

  // Null: the thread has waited long enough.
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

  // False: until the end.
  bool Sleep(Deadline end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint32_t posted = posted_.load();
    mutex_.Unlock();
    const FutexResult result = FutexWait(posted_, posted, end);
    mutex_.Lock();
    return result != FutexResult::kTimedOut;
  }

  Mutex mutex_;
  TaskList tasks_ ABSL_GUARDED_BY(mutex_);
  // Never more of them than threads that are idle: each has one on its way to it.
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
