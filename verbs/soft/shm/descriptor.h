// Descriptor owns a descriptor of this wire; forked children close their copies of it (Host has the
// handler). Descent tells an object whether it belongs to this process or to the parent.
#ifndef VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_
#define VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_

#include <cstdint>
#include <utility>

#include "verbs/base/fd.h"
#include "verbs/base/fd_table.h"
#include "verbs/soft/foreign_fd.h"

namespace viaduct::verbs::shm {

inline constinit FdTable g_descriptors;

class Descriptor : public TabledFd {
 public:
  Descriptor() = default;
  explicit Descriptor(Fd fd) : TabledFd(g_descriptors, std::move(fd)) {}
  template <bool (*kEnd)(int)>
  explicit Descriptor(ForeignFd<kEnd> fd)
      : TabledFd(g_descriptors, fd.Release(), kEnd, &CloseElsewhere) {}
};

// A member of an object that may be copied by a fork. inherited(): the object is a forked child's
// copy of the parent's. Such a copy emits, consumes, marks and rings nothing: the memory is the
// parent's.
class Descent {
 public:
  bool inherited() const { return generation_ != g_descriptors.generation(); }

 private:
  const uint32_t generation_ = g_descriptors.generation();
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_
