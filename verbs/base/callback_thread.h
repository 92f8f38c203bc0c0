// The one thread that runs the program's callbacks, for both faces: VIPL's error callbacks, DAT's
// proxy agents. Starts with the first callback and lives as long as the process; a callback that
// never returns stops callbacks only.
//
// Any call of the API is legal inside a callback, the destruction of the object itself included.
// Nothing runs once exit() has begun: a program that just exits must not be told that its
// connections are lost.
#ifndef VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
#define VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_

#include <functional>

namespace viaduct::verbs {

// Runs `callback` after every one posted before it. Any thread, inside an EpochGuard as well;
// never waits for a callback. False: it is lost, for want of memory (that is logged) or because
// exit() has begun.
bool PostCallback(std::function<void()> callback) noexcept;

// From now on exit() stops callbacks. Called when an adapter is opened, so that it is registered
// before a program's own exit handlers that may run meanwhile.
void StopCallbacksAtExit();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CALLBACK_THREAD_H_
