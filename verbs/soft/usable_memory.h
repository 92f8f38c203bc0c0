// Whether the process may read and write memory that is to be registered. A device in hardware
// refuses what it cannot; here a message of the peer's would end the process with a fault.
//
// The kernel's list of mappings takes tens of microseconds to read, so that some that could be
// written, and whose file does not end before them, are remembered: where one of them has lost
// that right since, or its file that end, nobody notices. Memory that is unmapped while it is
// registered, or is cut off its file, is the program's own fault.
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
  // It is mapped without a hole, not behind the end of a file, and can be read, and written if it
  // shall be.
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
