// The one thread that runs the program's callbacks, for both faces: VIPL's error callbacks and
// notifies, DAT's proxy agents. Starts with the first callback, or with PrepareCallbacks, and lives
// as long as the process, or until a callback ends it (pthread_exit), and then there is another; a
// callback that never returns stops callbacks only. Where the process may have no more threads, or
// there is no memory for this one, callbacks wait.
//
// Any call of the API is legal inside a callback, the destruction of the object itself included.
// Nothing begins once exit() has begun: a program that just exits must not be told that its
// connections are lost. What is at work then runs on beside it.
#ifndef VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
#define VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

// A callback in memory of its owner's, so that posting it needs none. Many owners want a
// CallbackErrand (callback_errand.h).
class PreparedCallback : public PreparedTask {
 public:
  // The object that AwaitCallback is asked about; nobody looks into it. While this is posted.
  virtual const void* about() const = 0;
  // Instead of Run once exit() has begun; it may do what Run may.
  virtual void Drop() = 0;

 protected:
  PreparedCallback() = default;
  ~PreparedCallback() = default;
};

// Starts the thread, or sees to it that it starts as soon as it can; PostCallback needs no memory
// from then on. Throws std::bad_alloc.
void PrepareCallbacks();

// Runs `callback` on the callback thread after every one posted before it. Any thread, inside an
// EpochGuard as well; never waits for a callback. False: it will not run, because exit() has begun
// or because there was no memory to start the thread (that is logged).
bool PostCallback(PreparedCallback& callback) noexcept;

namespace internal {

void LogLostCallback();

class FunctionCallback final : public PreparedCallback {
 public:
  FunctionCallback(const void* about, std::function<void()> function)
      : about_(about), function_(std::move(function)) {}

 private:
  const void* about() const override { return about_; }
  void Run() override {
    const std::unique_ptr<FunctionCallback> self(this);
    function_();
  }
  void Drop() override { delete this; }

  const void* const about_;
  const std::function<void()> function_;
};

}  // namespace internal

// The same for a function, which takes memory. False also without that (which is logged).
template <typename Callback>
bool PostCallback(const void* about, Callback&& callback) noexcept {
  try {
    auto made =
        std::make_unique<internal::FunctionCallback>(about, std::forward<Callback>(callback));
    if (!PostCallback(*made)) return false;
    static_cast<void>(made.release());
    return true;
  } catch (const std::exception&) {
    internal::LogLostCallback();
    return false;
  }
}

// The program is about to free what callbacks about this object use. Returns when none of them is
// at work; those that have not begun must find out themselves that it is gone. In a callback, and
// once exit() has begun, it does not wait; else no longer than `patience` (that is logged), for one
// that waits for this caller. Outside of an EpochGuard, no lock held.
inline constexpr std::chrono::seconds kCallbackPatience{10};
void AwaitCallback(const void* about, std::chrono::milliseconds patience = kCallbackPatience);

// From now on exit() stops callbacks. Called when an adapter is opened, so that it is registered
// before a program's own exit handlers that may run meanwhile.
void StopCallbacksAtExit();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
