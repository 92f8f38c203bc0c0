#include "verbs/base/callback_thread.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/engine_thread.h"
#include "verbs/base/epoch.h"
#include "verbs/base/log.h"
#include "verbs/base/per_process.h"

namespace viaduct::verbs {
namespace {

constinit std::atomic<bool> watches_exit{false};
constinit std::atomic<bool> exiting{false};

// A child that is forked while its parent exits does not exit itself.
const AtFork at_fork(nullptr, nullptr, [] {
  if (exiting.exchange(false)) watches_exit.store(false);
});

constexpr Nanos kPause = 100'000'000;

class CallbackThread {
 public:
  void Prepare() {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (!started_) Begin();
  }

  // Throws std::bad_alloc, and then nothing is posted.
  void Post(PreparedCallback& callback) {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (!started_) Begin();
    callbacks_.Append(callback);
    ready_.notify_one();
  }

  void Await(const void* about, std::chrono::milliseconds patience) {
    if (here == this || exiting.load(std::memory_order_acquire)) return;
    std::unique_lock<std::mutex> hold(mutex_);
    const uint64_t number = taken_;
    if (given_up_ == number) return;
    const bool returned =
        returned_.wait_for(hold, patience, [&] { return at_work_ != about || taken_ != number; });
    if (returned) return;
    given_up_ = number;
    Log(LogLevel::kWarn,
        "a callback has not returned while what it is about was freed: it may use what is "
        "gone");
  }

 private:
  // mutex_ is held. Throws std::bad_alloc, but not once it has returned.
  void Begin() {
    if (retry_ == nullptr) {
      const absl::StatusOr<ControlThread*> control = ControlThread::Get();
      // Without it no adapter is open.
      if (control.ok()) retry_ = (*control)->NewTicker([this] { return BeginLate(); });
    }
    BeginPrepared();
  }

  // mutex_ is held. If the process may have no more threads, this is tried again until it may: a
  // waiting callback keeps its object, for which the program may be waiting.
  void BeginPrepared() {
    started_ = Start();
    if (!started_ && retry_ != nullptr) retry_->StartLate();
  }

  // On the control thread.
  NextTick BeginLate() {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (!started_) started_ = Start();
    return started_ ? NextTick::kNever : NextTick::kLate;
  }

  bool Start() { return StartEngineThread(&Main, this) == 0; }

  static void* Main(void* self) {
    pthread_setname_np(pthread_self(), "viaduct-calls");
    here = static_cast<CallbackThread*>(self);
    here->Run();
    return nullptr;
  }

  // The library's own callbacks use EpochGuards. They cannot report that there is no memory for a
  // thread's first guard, so this makes one before the first callback begins.
  static void AwaitGuards() {
    for (;;) {
      try {
        const EpochGuard first;
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(kPause));
      }
    }
  }

  // False: a callback has forked, and this thread is the child's copy of its parent's.
  bool IsOwn() const;

  void Run() {
    // Runs when a callback ends the thread.
    const absl::Cleanup ended = [this] {
      if (IsOwn()) Restart();
    };
    AwaitGuards();
    while (IsOwn()) {
      PreparedCallback& callback = Next();
      const absl::Cleanup returned = [this] {
        if (IsOwn()) Returned();
      };
      if (exiting.load(std::memory_order_acquire)) {
        callback.Drop();
      } else {
        callback.Run();
      }
    }
  }

  PreparedCallback& Next() {
    std::unique_lock<std::mutex> hold(mutex_);
    ready_.wait(hold, [this] { return !callbacks_.empty(); });
    auto& callback = static_cast<PreparedCallback&>(*callbacks_.TakeFirst());
    at_work_ = callback.about();
    ++taken_;
    return callback;
  }

  void Returned() {
    const std::lock_guard<std::mutex> hold(mutex_);
    at_work_ = nullptr;
    returned_.notify_all();
  }

  void Restart() {
    const std::lock_guard<std::mutex> hold(mutex_);
    BeginPrepared();
  }

  static constinit thread_local CallbackThread* here;  // null on other threads

  std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable returned_;
  TaskList callbacks_;
  const void* at_work_ = nullptr;  // what the running callback is about
  uint64_t taken_ = 0;             // callbacks taken so far
  uint64_t given_up_ = 0;          // the number of the one that nobody waits for any more
  bool started_ = false;
  std::unique_ptr<Ticker> retry_;  // tries again to start the thread
};

constinit thread_local CallbackThread* CallbackThread::here = nullptr;

// Never destroyed, since the thread may be running during exit().
using TheThread = PerProcess<CallbackThread>;

bool CallbackThread::IsOwn() const { return TheThread::Find() == this; }

}  // namespace

void PrepareCallbacks() { TheThread::Get().Prepare(); }

bool PostCallback(PreparedCallback& callback) noexcept {
  if (exiting.load(std::memory_order_acquire)) return false;
  try {
    TheThread::Get().Post(callback);
    return true;
  } catch (const std::bad_alloc&) {
    internal::LogLostCallback();
    return false;
  }
}

void internal::LogLostCallback() {
  WriteLog(LogLevel::kError, "no memory for a callback: it is lost");
}

void AwaitCallback(const void* about, std::chrono::milliseconds patience) {
  // Destruction must need no memory, so this does not make the thread.
  if (CallbackThread* const thread = TheThread::Find(); thread != nullptr) {
    thread->Await(about, patience);
  }
}

void StopCallbacksAtExit() {
  if (watches_exit.exchange(true)) return;
  (void)std::atexit([] { exiting.store(true, std::memory_order_release); });
}

}  // namespace viaduct::verbs
