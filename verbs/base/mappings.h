// The process's memory as the kernel has it mapped.
#ifndef VIADUCT_VERBS_BASE_MAPPINGS_H_
#define VIADUCT_VERBS_BASE_MAPPINGS_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace viaduct::verbs {

struct Mapping {
  bool Holds(uint64_t address, uint64_t length) const {
    return begin <= address && address <= end && length <= end - address;
  }

  uint64_t begin = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool shared = false;  // MAP_SHARED, System V: other processes can have it too
  bool file = false;    // of a file, also of one without a name, as shared memory is
};

// True if every page of the range is mapped and `suits` holds for each mapping there; also if the
// kernel does not tell. Takes tens of microseconds, more in a process with many mappings.
bool EveryMapping(const void* address, size_t length,
                  absl::FunctionRef<bool(const Mapping&)> suits);

// False: touching the byte at `address`, which is mapped, raises SIGBUS, since the file ends before
// its page (or has no memory for it). True also if the kernel (before Linux 5.14) does not tell.
// Reads the page in if it can be read.
bool IsInFile(uint64_t address);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_MAPPINGS_H_
