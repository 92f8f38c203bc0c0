// A thread of the engine's own. Nobody joins one: it is detached from its first moment, so that the
// exit of the process finds nothing left behind. No handler of the program runs on it (signals.h).
#ifndef VIADUCT_VERBS_BASE_ENGINE_THREAD_H_
#define VIADUCT_VERBS_BASE_ENGINE_THREAD_H_

#include <cstddef>

namespace viaduct::verbs {

// Runs main(argument) on a new thread. Its stack is of `stack` bytes, or as usual: for 0, and where
// the program's thread-local variables, which lie in it, need more. 0, or what pthread_create says:
// EAGAIN where the process may have no more threads. Any thread.
int StartEngineThread(void* (*main)(void*), void* argument, size_t stack = 0);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ENGINE_THREAD_H_
