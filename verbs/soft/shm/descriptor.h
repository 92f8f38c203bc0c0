// The owner of a descriptor of this wire, of which forked children close their copies (Host has the
// handler); and whose an object is behind a fork.
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

// Of an object: it is this process's, or a forked child's copy of the parent's. Then nothing is
// emitted, consumed, marked or rung: the memory is the parent's.
class Descent {
 public:
  bool inherited() const { return generation_ != g_descriptors.generation(); }

 private:
  const uint32_t generation_ = g_descriptors.generation();
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_DESCRIPTOR_H_
