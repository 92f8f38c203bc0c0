// The owner of a descriptor of this wire. Forked children close their copies.
#ifndef VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_
#define VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_

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

// There nothing is emitted, consumed, marked or rung: the memory is the parent's.
inline bool InForkChild() { return g_descriptors.in_fork_child(); }

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_
