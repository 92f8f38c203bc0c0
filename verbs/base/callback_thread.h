// The one thread that runs the program's callbacks, for both faces: VIPL's error callbacks and
// notifies, DAT's proxy agents. It starts with the first callback, or with PrepareCallbacks, and
// lives as long as the process. If a callback ends it (pthread_exit), another thread takes its
// place; a callback that never returns stops only callbacks. While the process may have no more
// threads, or there is no memory for this one, callbacks wait.
//
// Any call of the API is legal inside a callback, even the destruction of the object itself. No
// callback begins once exit() has come to StopCallbacksAtExit's handler: a program that just exits
// must not be told that its connections are lost. A callback that is running then goes on in
// parallel.
#ifndef VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
#define VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

// A callback that lies in memory of its owner, so that posting it needs none. Most owners want a
// CallbackErrand (callback_errand.h).
class PreparedCallback : public PreparedTask {
 public:
  // The object that the callback concerns, for AwaitCallback; never dereferenced. Called while the
  // callback is posted.
  virtual const void* about() const = 0;
  // Called instead of Run once exit() has come so far; may do what Run may.
  virtual void Drop() = 0;

 protected:
  PreparedCallback() = default;
  ~PreparedCallback() = default;
};

// Starts the thread, or sees to it that it is started as soon as possible. From then on
// PostCallback of a PreparedCallback needs no memory, and fails only once exit() has begun. Throws
// std::bad_alloc.
void PrepareCallbacks();

// Runs `callback` on the callback thread after every callback posted before it. Any thread, even
// inside an EpochGuard; never waits for a callback. False: the callback will not run, because
// exit() has begun or because there was no memory to start the thread (which is logged).
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

// The same for a function, which takes memory. False also if there is none (which is logged).
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

// Called when the program is about to free what callbacks about this object use. Returns when none
// of them is running; those that have not begun must find out themselves that the object is gone.
// Does not wait inside a callback, nor once exit() has begun. Gives up after `patience` (which is
// logged), since the callback may be waiting for this caller. Outside of an EpochGuard, no lock
// held.
inline constexpr std::chrono::seconds kCallbackPatience{10};
void AwaitCallback(const void* about, std::chrono::milliseconds patience = kCallbackPatience);

// From now on exit() stops callbacks. Called when an adapter is opened, so that its exit handler is
// registered before the program's own later ones, during which callbacks may still run.
void StopCallbacksAtExit();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
