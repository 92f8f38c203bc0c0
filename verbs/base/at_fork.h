// Handlers around a fork of the process, for code that owns a lock or a table.
#ifndef VIADUCT_VERBS_BASE_AT_FORK_H_
#define VIADUCT_VERBS_BASE_AT_FORK_H_

#include <pthread.h>

#include "absl/base/attributes.h"

namespace viaduct::verbs {

// A constant of a namespace, so that its handlers are registered from the loading of the library to
// its unloading, and no child is born while one is being registered. `before` runs in the forking
// thread before each fork, the others after it; each may be null.
//
// The linker decides the order of the handlers. So no thread may hold a lock that one `before`
// takes while it waits for a lock that another `before` takes. Threads of a library that is loaded
// later may hold its lock and wait for an earlier library's: the later one's `before` runs first.
class AtFork {
 public:
  // Inline, because libc attributes the handlers to the library that contains the call, and drops
  // them when that library is unloaded.
  ABSL_ATTRIBUTE_ALWAYS_INLINE AtFork(void (*before)(), void (*in_parent)(), void (*in_child)())
      : registered_(pthread_atfork(before, in_parent, in_child) == 0) {}
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;
  // False: out of memory.
  bool registered() const { return registered_; }

 private:
  const bool registered_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_AT_FORK_H_
