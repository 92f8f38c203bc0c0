// What must happen around a fork of the process, for those that own a lock or a table.
#ifndef VIADUCT_VERBS_BASE_AT_FORK_H_
#define VIADUCT_VERBS_BASE_AT_FORK_H_

#include <pthread.h>

#include "absl/base/attributes.h"

namespace viaduct::verbs {

// A constant of a namespace: its handlers are there when the library is loaded, until it is
// unloaded, so that no child is born while one is being registered. `before` runs in the forking
// thread ahead of each fork, the others behind it; each may be null.
//
// What `before` takes no thread holds that waits for what another one's takes: their order is the
// linker's. But a library that is loaded later has its turn earlier, and its threads may wait so.
class AtFork {
 public:
  // Inline: libc takes the handlers for those of the library that the call stands in, and forgets
  // them with that one.
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
