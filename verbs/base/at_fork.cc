#include "verbs/base/at_fork.h"

#include <pthread.h>

namespace viaduct::verbs {

bool AtFork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  return pthread_atfork(before, in_parent, in_child) == 0;
}

}  // namespace viaduct::verbs
