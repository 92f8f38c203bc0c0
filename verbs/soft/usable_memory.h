// Whether the process may read and write memory that is to be registered. A hardware device refuses
// memory that it cannot access; here a message of the peer would end the process with a fault.
//
// The kernel's list of mappings takes tens of microseconds to read. Hence this class remembers some
// mappings that were writable and lay within their file. It does not notice if there is read-only
// memory now, but it does if the file in which the range ends is shorter than that. If memory is
// unmapped while it is registered, or its file is truncated, that is the program's own fault.
//
// Any thread.
#ifndef VIADUCT_VERBS_SOFT_USABLE_MEMORY_H_
#define VIADUCT_VERBS_SOFT_USABLE_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"
#include "verbs/base/mappings.h"

namespace viaduct::verbs {

class UsableMemory {
 public:
  // The memory is mapped without a hole, does not lie beyond the end of a file, and can be read,
  // and also written if `written`.
  bool Has(const void* address, size_t length, bool written);

 private:
  bool Remembers(uint64_t address, size_t length);
  void Remember(const Mapping& mapping);

  Mutex mutex_;
  std::array<Mapping, 4> writable_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_USABLE_MEMORY_H_
