// The control thread: the one thread that the engine runs in a process.
//
// It starts with the first adapter and lives until the process ends. exit() may find it asleep or
// at work; neither matters, since nothing it uses is ever destroyed. At the end of exit() it says
// good-bye to peers. It blocks signals (signals.h), sleeps in epoll_wait without any periodic
// wake-up while nothing is due, and never runs the program's code.
//
// In a forked child the parent's control thread is dead: Post, RunAt, RunAndWait and Watch do
// nothing, Drain returns at once, alive() is false. The child's copies of its descriptors are
// closed, so that peers notice the parent's death even while a child lives. A child that opens an
// adapter of its own gets a control thread of its own.
#ifndef VIADUCT_VERBS_BASE_CONTROL_THREAD_H_
#define VIADUCT_VERBS_BASE_CONTROL_THREAD_H_

#include <pthread.h>
#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/fd.h"
#include "verbs/base/lock.h"
#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

class ControlThread final : public EventLoop {
 public:
  // Starts the thread at this process's first call. ResourceExhausted: no thread or no descriptors;
  // a later call tries again.
  static absl::StatusOr<ControlThread*> Get();

  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // False in a child that was forked after the thread was started. Any thread.
  bool alive() const { return alive_.load(std::memory_order_relaxed); }

  // CLOCK_MONOTONIC.
  Nanos Now() const override;
  void Post(Task task) override;
  bool Post(PreparedTask& task) override;
  TimerId RunAt(Nanos when, Task task) override;
  bool Cancel(TimerId timer) override;
  bool OnExecutor() const override;
  void Drain() override;
  void GiveWay() override;
  std::unique_ptr<Parker> NewParker() override;

  void RunAndWait(absl::FunctionRef<void()> task) override;
  absl::Status Watch(int fd, uint32_t events, FdHandler handler) override;
  void SetEvents(int fd, uint32_t events) override;
  void Unwatch(int fd) override;
  std::unique_ptr<Ticker> NewTicker(std::function<NextTick()> tick) override;
  void OnExit(ExitHook hook) override;

  // Runs the hooks of OnExit as the process exits. Takes no lock, since a program may call exit()
  // while it holds any of ours, for example in a signal handler.
  static void Leave();

 private:
  class LoopTicker;
  struct Tick;
  class PostedTask;
  class AwaitedTask;
  // Lives in a shared_ptr, so that Unwatch inside the handler does not destroy the handler.
  struct Watched {
    int fd;
    FdHandler handler;
  };

  explicit ControlThread(const ControlThread* inherited) : inherited_(inherited) {}
  ~ControlThread() = default;

  static const AtFork at_fork_;

  absl::Status Start();
  static void* ThreadMain(void* self);
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();

  void Run();
  // Each of these returns with mutex_ released.
  void RunTasks();
  void RunTimers();
  // Handles the events of the time in which the thread stood still, before the timers of that time
  // run out, which take a peer for silent.
  void CatchUp();
  void RunTicks();
  void RunHandlers(const epoll_event* events, int count);
  // Run the hooks of OnExit, on the loop or on the exiting thread, which waits in AwaitLeft.
  void LeaveOnLoop();
  void RunExitHooks();
  void AwaitLeft(Deadline deadline);
  // Sleeps until something is due; returns the number of events.
  int Sleep(epoll_event* events, int capacity);
  // Ends a sleep. Any thread.
  void Wake();
  bool AnyTickWantedSoon() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Nanos FirstLateTick() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetRunning(const void* object);
  // Off the loop: returns when the function of `object`, which was unlinked before, is not running.
  void WaitUntilNotRunning(const void* object);

  // The parent's loop: objects made with it still use it, and no leak checker is to report it.
  [[maybe_unused]] const ControlThread* const inherited_;
  Mutex mutex_;
  TaskList tasks_ ABSL_GUARDED_BY(mutex_);
  // A round is a call of RunTasks. drain_due_: somebody waits for the end of the next one. So Drain
  // needs no memory: it is called where objects end.
  uint32_t begun_rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool drain_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<uint32_t> ended_rounds_{0};
  std::map<std::pair<Nanos, TimerId>, Task> timers_ ABSL_GUARDED_BY(mutex_);
  // Standard tables, since Abseil's are corrupt once they have found no memory to grow.
  std::unordered_map<TimerId, Nanos> timer_times_ ABSL_GUARDED_BY(mutex_);
  TimerId last_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  // By the number in epoll's data, which is never reused, unlike descriptors.
  std::unordered_map<uint64_t, std::shared_ptr<Watched>> watched_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<int, uint64_t> watch_ids_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_watch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Tick>> ticks_ ABSL_GUARDED_BY(mutex_);
  // The Watched or Tick whose function runs now.
  const void* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> asleep_{false};  // written under mutex_
  // Asleep with no tick due soon: Ticker::Start has to wake the loop.
  std::atomic<bool> ticks_asleep_{false};
  std::atomic<bool> alive_{false};
  // Null after the last one. An array of atomics, since exit() may have neither lock nor memory.
  std::array<std::atomic<ExitHook>, kMostExitHooks> exit_hooks_ = {};
  enum Leaving : uint32_t { kStays, kLeaves, kRunsHooks, kHasLeft };
  std::atomic<uint32_t> leaving_{kStays};
  std::atomic<pthread_t> thread_{0};
  // Loop only: when CatchUp last ended; what was due before is late, but nothing stands still now.
  Nanos caught_up_ = 0;
  // Loop only: when the ticks that are wanted soon are due, and when the first late one is.
  Nanos next_tick_ = 0;
  Nanos first_late_tick_ = std::numeric_limits<Nanos>::max();
  Fd epoll_;
  Fd wake_;  // eventfd
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CONTROL_THREAD_H_
