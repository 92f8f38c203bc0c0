#include "verbs/soft/shm/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "verbs/base/asymmetric_fence.h"

namespace viaduct::verbs::shm {

bool RegisterGlobalFence() {
  static const bool registered = [] {
    const int saved = errno;
    const bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    errno = saved;
    return done;
  }();
  return registered;
}

void GlobalFence() {
  FullFence();
  if (!RegisterGlobalFence()) return;
  const int saved = errno;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) OutwaitStores();
  errno = saved;
}

}  // namespace viaduct::verbs::shm
