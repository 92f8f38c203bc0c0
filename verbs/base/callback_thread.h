// The one thread that runs the program's callbacks, for both faces: VIPL's error callbacks and
// notifies, DAT's proxy agents. Starts with the first callback and lives as long as the process, or
// until a callback ends it (pthread_exit), and then there is another; a callback that never returns
// stops callbacks only. Where the process may have no more threads, or there is no memory for this
// one, callbacks wait.
//
// Any call of the API is legal inside a callback, the destruction of the object itself included.
// Nothing begins once exit() has begun: a program that just exits must not be told that its
// connections are lost. What is at work then runs on beside it.
#ifndef VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
#define VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_

#include <chrono>
#include <exception>
#include <functional>
#include <utility>

namespace viaduct::verbs {

namespace internal {

bool EnqueueCallback(const void* about, std::function<void()> callback);
void LogLostCallback();

}  // namespace internal

// Runs `callback` after every one posted before it. `about`: an object, for AwaitCallback, which is
// not looked into. Any thread, inside an EpochGuard as well; never waits for a callback. False: it
// is lost and will not run, for want of memory (that is logged) or because exit() has begun.
template <typename Callback>
bool PostCallback(const void* about, Callback&& callback) noexcept {
  try {  // turning it into a function takes memory, too
    return internal::EnqueueCallback(about, std::forward<Callback>(callback));
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
