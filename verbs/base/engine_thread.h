// A thread of the engine's own. Nobody joins it: it is detached from its first moment, so that the
// exit of the process finds nothing left behind. No signal handler runs on it (signals.h).
#ifndef VIADUCT_VERBS_BASE_ENGINE_THREAD_H_
#define VIADUCT_VERBS_BASE_ENGINE_THREAD_H_

#include <cstddef>

namespace viaduct::verbs {

// Runs main(argument) on a new thread with a stack of `stack` bytes. The stack has the usual size
// if `stack` is 0 or too small for the program's thread-local variables, which lie in it. Returns 0
// or the error of pthread_create: EAGAIN if the process may have no more threads. Any thread.
int StartEngineThread(void* (*main)(void*), void* argument, size_t stack = 0);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ENGINE_THREAD_H_
