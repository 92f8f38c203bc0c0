// For the lock of a table that a forked child goes on using.
#ifndef VIADUCT_VERBS_BASE_HELD_ACROSS_FORKS_H_
#define VIADUCT_VERBS_BASE_HELD_ACROSS_FORKS_H_

#include "absl/base/thread_annotations.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs {

// Defined like an AtFork: no fork begins while a thread holds kMutex, and in the child nobody holds
// it. Not for a mutex that is held across a call of the program's code, which may fork.
template <Mutex& kMutex>
class HeldAcrossForks : AtFork {
 public:
  ABSL_ATTRIBUTE_ALWAYS_INLINE HeldAcrossForks() : AtFork(&Lock, &Unlock, &Unlock) {}

 private:
  static void Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { kMutex.Lock(); }
  static void Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { kMutex.Unlock(); }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_HELD_ACROSS_FORKS_H_
