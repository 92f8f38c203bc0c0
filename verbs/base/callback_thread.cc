#include "verbs/base/callback_thread.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "verbs/base/log.h"
#include "verbs/base/signals.h"

namespace viaduct::verbs {
namespace {

constinit std::atomic<bool> exiting{false};

class CallbackThread {
 public:
  void Post(std::function<void()> callback) {
    const std::lock_guard<std::mutex> hold(mutex_);
    callbacks_.push_back(std::move(callback));
    if (!started_) started_ = Start();
    ready_.notify_one();
  }

 private:
  bool Start() {
    const SignalsBlocked for_the_thread;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, &Main, this) != 0) return false;
    pthread_setname_np(thread, "viaduct-calls");
    pthread_detach(thread);
    return true;
  }

  static void* Main(void* self) {
    static_cast<CallbackThread*>(self)->Run();
    return nullptr;
  }

  void Run() {
    std::unique_lock<std::mutex> hold(mutex_);
    while (true) {
      ready_.wait(hold, [this] { return !callbacks_.empty(); });
      std::function<void()> callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      hold.unlock();
      if (!exiting.load(std::memory_order_acquire)) callback();
      callback = nullptr;
      hold.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> callbacks_;
  bool started_ = false;
};

// Never destroyed: the thread may be at work in exit().
CallbackThread& TheThread() {
  static CallbackThread* const thread = new CallbackThread;
  return *thread;
}

}  // namespace

bool PostCallback(std::function<void()> callback) noexcept {
  if (exiting.load(std::memory_order_acquire)) return false;
  try {
    TheThread().Post(std::move(callback));
    return true;
  } catch (const std::exception&) {
    WriteLog(LogLevel::kError, "no memory for a callback: it is lost");
    return false;
  }
}

void StopCallbacksAtExit() {
  static const int registered = std::atexit([] { exiting.store(true, std::memory_order_release); });
  static_cast<void>(registered);
}

}  // namespace viaduct::verbs
