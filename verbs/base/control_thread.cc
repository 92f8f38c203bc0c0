#include "verbs/base/control_thread.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/asymmetric_fence.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/engine_thread.h"
#include "verbs/base/futex.h"
#include "verbs/base/log.h"
#include "verbs/base/uncancelled.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kTickPeriod = kNanosPerMilli;
constexpr Nanos kLateTickPeriod = 16 * kTickPeriod;
constexpr Nanos kLongestExit = kNanosPerSecond;  // if the loop cannot run; else microseconds
// Then the exiting thread runs the hooks, unless the loop has begun them.
constexpr Nanos kPatientExit = kLongestExit / 4;
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
// A timer that is this late shows that the process, or this thread, has stood still.
constexpr Nanos kMuchTooLate = 100 * kNanosPerMilli;
constexpr Nanos kCatchUpTime = 200 * kNanosPerMilli;  // for a peer may send without end
constexpr int kEventsAtOnce = 64;
constexpr uint64_t kWakeId = 0;  // epoll data of the eventfd; watches count from 1

// Held by Get, and across a fork.
Mutex g_start_mutex;
std::atomic<ControlThread*> g_instance{nullptr};
const ControlThread* g_inherited = nullptr;  // the parent's, which points to its own parent's

absl::Status NoResources(const char* call, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("control thread: ", call, ": ", std::strerror(error)));
}

int EpollWait(int epoll, epoll_event* events, int capacity, Nanos duration) {
  static std::atomic<bool> has_nanoseconds{true};
  if (has_nanoseconds.load(std::memory_order_relaxed)) {
    const timespec timeout = {static_cast<time_t>(duration / kNanosPerSecond),
                              static_cast<long>(duration % kNanosPerSecond)};
    const int count =
        epoll_pwait2(epoll, events, capacity, duration == kNever ? nullptr : &timeout, nullptr);
    // Old kernels say ENOSYS; system-call filters have other errors for it.
    if (count >= 0 || errno == EINTR) return count;
    has_nanoseconds.store(false, std::memory_order_relaxed);
  }
  const Nanos milliseconds = duration / kNanosPerMilli + (duration % kNanosPerMilli != 0);
  return epoll_wait(
      epoll, events, capacity,
      duration == kNever ? -1 : static_cast<int>(std::min<Nanos>(milliseconds, 1'000'000'000)));
}

}  // namespace

// Shared between the ticker and a call in progress.
struct ControlThread::Tick {
  std::function<NextTick()> function;
  std::atomic<NextTick> wanted{NextTick::kNever};
  std::atomic<Nanos> late_due{0};  // while it is wanted late
};

// On the heap until it has run.
class ControlThread::PostedTask final : public PreparedTask {
 public:
  explicit PostedTask(Task task) : task_(std::move(task)) {}
  void Run() override {
    const std::unique_ptr<PostedTask> self(this);
    task_();
  }

 private:
  const Task task_;
};

// On the stack of the thread that waits for it.
class ControlThread::AwaitedTask final : public PreparedTask {
 public:
  explicit AwaitedTask(absl::FunctionRef<void()> task) : task_(task) {}
  void Run() override { task_(); }

 private:
  const absl::FunctionRef<void()> task_;
};

class ControlThread::LoopTicker final : public Ticker {
 public:
  LoopTicker(ControlThread* loop, std::function<NextTick()> function)
      : loop_(loop), tick_(std::make_shared<Tick>()) {
    tick_->function = std::move(function);
    MutexLock lock(&loop_->mutex_);
    loop_->ticks_.push_back(tick_);
  }
  ~LoopTicker() override {
    {
      MutexLock lock(&loop_->mutex_);  // so that Sleep, which looks twice, sees one answer
      tick_->wanted.store(NextTick::kNever, std::memory_order_relaxed);
      loop_->ticks_.erase(std::find(loop_->ticks_.begin(), loop_->ticks_.end(), tick_));
    }
    loop_->WaitUntilNotRunning(tick_.get());
  }

  void Start() override {
    // Pairs with the exchange in RunTicks: either the tick that is due sees what the caller stored,
    // or this load sees that it has begun.
    FullFence();
    if (tick_->wanted.load(std::memory_order_relaxed) == NextTick::kSoon) return;
    tick_->wanted.store(NextTick::kSoon);
    WakeLoop();
  }

  void StartLate() override {
    FullFence();  // as in Start
    NextTick never = NextTick::kNever;
    if (tick_->wanted.load(std::memory_order_relaxed) != never) return;
    tick_->late_due.store(loop_->Now() + kLateTickPeriod, std::memory_order_relaxed);
    if (tick_->wanted.compare_exchange_strong(never, NextTick::kLate)) WakeLoop();
  }

 private:
  // Pairs with Sleep: `wanted` is stored before this and then ticks_asleep_ is loaded; Sleep stores
  // ticks_asleep_ and then loads `wanted`. All are sequentially consistent. The loop itself need
  // not be woken: it checks before it sleeps.
  void WakeLoop() {
    if (loop_->OnExecutor()) return;
    if (loop_->ticks_asleep_.load() && loop_->ticks_asleep_.exchange(false)) loop_->Wake();
  }

  ControlThread* const loop_;
  const std::shared_ptr<Tick> tick_;
};

absl::StatusOr<ControlThread*> ControlThread::Get() {
  ControlThread* instance = g_instance.load(std::memory_order_acquire);
  if (instance == nullptr) {
    MutexLock lock(&g_start_mutex);
    instance = g_instance.load(std::memory_order_relaxed);
    if (instance == nullptr) {
      instance = new ControlThread(g_inherited);
      if (absl::Status status = instance->Start(); !status.ok()) {
        delete instance;
        return status;
      }
      g_instance.store(instance, std::memory_order_release);
      // For exit() there is LeaveProcess. A forked child inherits the registration.
      [[maybe_unused]] static const int registered = std::at_quick_exit(&ControlThread::Leave);
    }
  }
  return instance;
}

const AtFork ControlThread::at_fork_(BeforeFork, AfterForkInParent, AfterForkInChild);

absl::Status ControlThread::Start() {
  if (!at_fork_.registered()) return NoResources("pthread_atfork", ENOMEM);
  epoll_ = MoveHigh(Fd(epoll_create1(EPOLL_CLOEXEC)));
  wake_ = MoveHigh(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!epoll_.valid() || !wake_.valid()) return NoResources("descriptors", errno);
  // Edge-triggered: every write is an event, and nobody needs to read the counter.
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kWakeId;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return NoResources("epoll_ctl", errno);
  }
  alive_.store(true, std::memory_order_relaxed);
  const int error = StartEngineThread(&ThreadMain, this);
  if (error != 0) return NoResources("pthread_create", error);
  return absl::OkStatus();
}

void* ControlThread::ThreadMain(void* self) {
  auto* loop = static_cast<ControlThread*>(self);
  loop->thread_.store(pthread_self(), std::memory_order_relaxed);
  pthread_setname_np(pthread_self(), "viaduct");
  loop->Run();
  return nullptr;
}

// The child must not inherit a lock that another thread held.
void ControlThread::BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  g_start_mutex.Lock();
  ControlThread* instance = g_instance.load(std::memory_order_relaxed);
  if (instance != nullptr) instance->mutex_.Lock();
}

void ControlThread::AfterForkInParent() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  ControlThread* instance = g_instance.load(std::memory_order_relaxed);
  if (instance != nullptr) instance->mutex_.Unlock();
  g_start_mutex.Unlock();
}

void ControlThread::AfterForkInChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  ControlThread* instance = g_instance.load(std::memory_order_relaxed);
  if (instance != nullptr) {
    instance->alive_.store(false, std::memory_order_relaxed);
    instance->thread_.store(0, std::memory_order_relaxed);  // a thread of the child may get the id
    // A signal handler may have forked in the middle of a Drain, which nobody would end here.
    instance->ended_rounds_.fetch_add(1u << 30, std::memory_order_relaxed);
    instance->mutex_.Unlock();
    instance->epoll_.Reset();
    instance->wake_.Reset();
    // Objects made with this loop keep it; those made from now on get another.
    g_instance.store(nullptr, std::memory_order_relaxed);
    g_inherited = instance;
  }
  g_start_mutex.Unlock();
}

void ControlThread::Run() {
  epoll_event events[kEventsAtOnce];
  for (;;) {
    RunTasks();
    RunTimers();
    RunTicks();
    if (leaving_.load() == kLeaves) LeaveOnLoop();
    RunHandlers(events, Sleep(events, kEventsAtOnce));
  }
}

void ControlThread::RunTasks() {
  // Tasks that these tasks post wait for the next round: descriptors get their turn in between.
  uint32_t round;
  bool drains;
  TaskList tasks = [&] {
    MutexLock lock(&mutex_);
    round = ++begun_rounds_;
    drains = std::exchange(drain_due_, false);
    return std::move(tasks_);
  }();
  while (PreparedTask* const task = tasks.TakeFirst()) task->Run();
  ended_rounds_.store(round, std::memory_order_release);
  if (drains) FutexWake(ended_rounds_, INT_MAX);
}

void ControlThread::RunTimers() {
  const Nanos now = Now();
  for (;;) {
    Task task;
    {
      MutexLock lock(&mutex_);
      const auto first = timers_.begin();
      if (first == timers_.end() || first->first.first > now) return;
      if (now - std::max(first->first.first, caught_up_) < kMuchTooLate) {
        timer_times_.erase(first->first.second);
        task = std::move(first->second);
        timers_.erase(first);
      }
    }
    if (task) {
      task();
    } else {
      CatchUp();
    }
  }
}

void ControlThread::CatchUp() {
  const Nanos begin = Now();
  epoll_event events[kEventsAtOnce];
  // Some handlers take a limited number of messages and are called again.
  for (int count = 1; count > 0 && Now() - begin < kCatchUpTime;) {
    count = EpollWait(epoll_.get(), events, kEventsAtOnce, 0);
    RunHandlers(events, count);
  }
  caught_up_ = Now();
}

void ControlThread::RunTicks() {
  const bool any_soon = !ticks_asleep_.load(std::memory_order_relaxed);
  if (!any_soon && first_late_tick_ == kNever) return;
  const Nanos now = Now();
  const bool soon = any_soon && now >= next_tick_;
  if (!soon && now < first_late_tick_) return;
  if (soon) next_tick_ = now + kTickPeriod;
  const auto due = [soon, now](const Tick& tick) {
    const NextTick wanted = tick.wanted.load(std::memory_order_relaxed);
    if (wanted == NextTick::kSoon) return soon;
    return wanted == NextTick::kLate && now >= tick.late_due.load(std::memory_order_relaxed);
  };
  std::vector<std::shared_ptr<Tick>> ticks;
  {
    MutexLock lock(&mutex_);
    std::copy_if(ticks_.begin(), ticks_.end(), std::back_inserter(ticks),
                 [&due](const std::shared_ptr<Tick>& tick) { return due(*tick); });
  }
  for (const std::shared_ptr<Tick>& tick : ticks) {
    {
      MutexLock lock(&mutex_);
      if (std::find(ticks_.begin(), ticks_.end(), tick) == ticks_.end()) continue;
      running_ = tick.get();
    }
    tick->wanted.exchange(NextTick::kNever);  // a full fence; see LoopTicker::Start
    const NextTick next = tick->function();
    tick->late_due.store(now + kLateTickPeriod, std::memory_order_relaxed);
    // A Start or StartLate that came meanwhile has already said when the next tick is wanted.
    NextTick never = NextTick::kNever;
    tick->wanted.compare_exchange_strong(never, next, std::memory_order_relaxed);
    SetRunning(nullptr);
  }
}

void ControlThread::RunHandlers(const epoll_event* events, int count) {
  for (int i = 0; i < count; ++i) {
    std::shared_ptr<Watched> watched;
    {
      MutexLock lock(&mutex_);
      const auto it = watched_.find(events[i].data.u64);
      if (it == watched_.end()) continue;  // the eventfd, or unwatched since
      watched = it->second;
      running_ = watched.get();
    }
    watched->handler(events[i].events);
    SetRunning(nullptr);
  }
}

int ControlThread::Sleep(epoll_event* events, int capacity) {
  Nanos due = kNever;
  {
    MutexLock lock(&mutex_);
    if (!timers_.empty()) due = timers_.begin()->first.first;
    if (!AnyTickWantedSoon()) ticks_asleep_.store(true);  // see LoopTicker::WakeLoop
    if (AnyTickWantedSoon()) {
      ticks_asleep_.store(false, std::memory_order_relaxed);
      due = std::min(due, next_tick_);
    }
    first_late_tick_ = FirstLateTick();
    due = std::min(due, first_late_tick_);
    if (!tasks_.empty() || drain_due_) due = 0;
    asleep_ = true;
  }
  Nanos duration = due;
  if (due != kNever) duration = due == 0 ? 0 : std::max<Nanos>(0, due - Now());
  int count = EpollWait(epoll_.get(), events, capacity, duration);
  // The process was stopped and continues, though perhaps not much too late for a timer.
  if (count < 0 && errno == EINTR) count = EpollWait(epoll_.get(), events, capacity, 0);
  {
    MutexLock lock(&mutex_);
    asleep_ = false;
  }
  return count;
}

void ControlThread::Wake() {
  const int saved = errno;
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the loop has been woken.
  uncancelled::Write(wake_.get(), &one, sizeof one);
  errno = saved;
}

bool ControlThread::AnyTickWantedSoon() const {
  return std::any_of(ticks_.begin(), ticks_.end(), [](const std::shared_ptr<Tick>& tick) {
    return tick->wanted.load() == NextTick::kSoon;
  });
}

Nanos ControlThread::FirstLateTick() const {
  Nanos first = kNever;
  for (const std::shared_ptr<Tick>& tick : ticks_) {
    if (tick->wanted.load() == NextTick::kLate) {
      first = std::min(first, tick->late_due.load(std::memory_order_relaxed));
    }
  }
  return first;
}

void ControlThread::SetRunning(const void* object) {
  MutexLock lock(&mutex_);
  running_ = object;
}

void ControlThread::WaitUntilNotRunning(const void* object) {
  {
    MutexLock lock(&mutex_);
    if (running_ != object) return;
  }
  Drain();
}

Nanos ControlThread::Now() const { return MonotonicNow(); }

void ControlThread::Post(Task task) {
  auto posted = std::make_unique<PostedTask>(std::move(task));
  if (Post(*posted)) (void)posted.release();
}

bool ControlThread::Post(PreparedTask& task) {
  if (!alive()) return false;
  bool wake;
  {
    MutexLock lock(&mutex_);
    // The first task posted during a sleep wakes the loop; later ones find it waking up.
    wake = asleep_ && tasks_.empty();
    tasks_.Append(task);
  }
  if (wake) Wake();
  return true;
}

Executor::TimerId ControlThread::RunAt(Nanos when, Task task) {
  bool wake;
  TimerId id;
  {
    MutexLock lock(&mutex_);
    id = ++last_timer_;
    if (!alive()) return id;
    wake = asleep_ && (timers_.empty() || when < timers_.begin()->first.first);
    const auto time = timer_times_.emplace(id, when).first;
    absl::Cleanup undo = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { timer_times_.erase(time); };
    timers_.emplace(std::make_pair(when, id), std::move(task));
    std::move(undo).Cancel();
  }
  if (wake) Wake();
  return id;
}

bool ControlThread::Cancel(TimerId timer) {
  if (!alive()) return true;
  Task task;  // destroyed without the lock
  MutexLock lock(&mutex_);
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return false;
  const auto entry = timers_.find(std::make_pair(it->second, timer));
  task = std::move(entry->second);
  timers_.erase(entry);
  timer_times_.erase(it);
  return true;
}

bool ControlThread::OnExecutor() const {
  return pthread_equal(thread_.load(std::memory_order_relaxed), pthread_self()) != 0;
}

void ControlThread::Drain() {
  if (!alive() || OnExecutor()) return;
  const CancellationDisabled no_cancellation;
  uint32_t round;  // the next one: every task posted so far has run when it ends
  bool wake;
  {
    MutexLock lock(&mutex_);
    round = begun_rounds_ + 1;
    wake = asleep_ && tasks_.empty() && !drain_due_;
    drain_due_ = true;
  }
  if (wake) Wake();
  for (;;) {
    const uint32_t ended = ended_rounds_.load(std::memory_order_acquire);
    if (static_cast<int32_t>(ended - round) >= 0) return;
    FutexWait(ended_rounds_, ended, Deadline::Infinite());
  }
}

void ControlThread::RunAndWait(absl::FunctionRef<void()> task) {
  if (!alive()) return;
  if (OnExecutor()) return task();
  AwaitedTask awaited(task);
  if (Post(awaited)) Drain();  // the task runs in the round that Drain waits for, or before
}

// A thread that wakes up mostly preempts one that polls on its processor. One that was preempted at
// work does not: it waits until the polling thread's time slice is over, which is milliseconds.
void ControlThread::GiveWay() {
  if (alive() && !asleep_.load(std::memory_order_relaxed)) sched_yield();
}

std::unique_ptr<Parker> ControlThread::NewParker() { return std::make_unique<FutexParker>(); }

absl::Status ControlThread::Watch(int fd, uint32_t events, FdHandler handler) {
  if (!alive()) return absl::FailedPreconditionError("the loop of the process that has forked");
  auto watched = std::make_shared<Watched>();  // destroyed without the lock if this fails
  watched->fd = fd;
  watched->handler = std::move(handler);
  MutexLock lock(&mutex_);
  const uint64_t id = ++last_watch_;
  uint64_t& id_of_fd = watch_ids_[fd];  // 0: nobody watches it
  absl::Cleanup undo = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    watched_.erase(id);
    if (id_of_fd == 0) watch_ids_.erase(fd);
  };
  watched_.emplace(id, watched);
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  id_of_fd = id;
  std::move(undo).Cancel();
  return absl::OkStatus();
}

void ControlThread::SetEvents(int fd, uint32_t events) {
  MutexLock lock(&mutex_);
  const auto it = watch_ids_.find(fd);
  if (!alive() || it == watch_ids_.end()) return;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = it->second;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
    Log(LogLevel::kError, "epoll_ctl: descriptor ", fd, ": ", std::strerror(errno));
  }
}

void ControlThread::Unwatch(int fd) {
  std::shared_ptr<Watched> watched;  // destroyed without the lock
  {
    MutexLock lock(&mutex_);
    const auto it = watch_ids_.find(fd);
    if (it == watch_ids_.end()) return;
    if (alive()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const auto entry = watched_.find(it->second);
    watched = std::move(entry->second);
    watched_.erase(entry);
    watch_ids_.erase(it);
  }
  WaitUntilNotRunning(watched.get());
}

std::unique_ptr<Ticker> ControlThread::NewTicker(std::function<NextTick()> tick) {
  return std::make_unique<LoopTicker>(this, std::move(tick));
}

void ControlThread::OnExit(ExitHook hook) {
  for (std::atomic<ExitHook>& place : exit_hooks_) {
    ExitHook there = nullptr;
    if (place.compare_exchange_strong(there, hook) || there == hook) return;
  }
  std::abort();  // more subsystems than there is room for
}

void ControlThread::RunExitHooks() {
  for (const std::atomic<ExitHook>& place : exit_hooks_) {
    if (const ExitHook hook = place.load(); hook != nullptr) hook(*this);
  }
}

void ControlThread::LeaveOnLoop() {
  RunTasks();  // perhaps a disconnect just before the exit
  leaving_.store(kRunsHooks);
  RunExitHooks();
  leaving_.store(kHasLeft);
  FutexWake(leaving_, 1);
}

void ControlThread::AwaitLeft(Deadline deadline) {
  for (;;) {
    const uint32_t seen = leaving_.load();
    if (seen == kHasLeft || deadline.Passed(*this)) return;
    FutexWait(leaving_, seen, deadline);
  }
}

void ControlThread::Leave() {
  ControlThread* instance = g_instance.load(std::memory_order_acquire);
  if (instance == nullptr || instance->OnExecutor()) return;
  const Deadline patient = Deadline::After(*instance, kPatientExit);
  const Deadline longest = Deadline::After(*instance, kLongestExit);
  instance->leaving_.store(kLeaves);
  instance->Wake();
  instance->AwaitLeft(patient);
  if (instance->leaving_.load() == kLeaves) instance->RunExitHooks();
  instance->AwaitLeft(longest);
}

namespace {

// Runs when the library is finalized, after every atexit handler.
__attribute__((destructor)) void LeaveProcess() { ControlThread::Leave(); }

}  // namespace
}  // namespace viaduct::verbs
