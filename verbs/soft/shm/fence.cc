#include "verbs/soft/shm/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "verbs/base/asymmetric_fence.h"

namespace viaduct::verbs::shm {

bool RegisterGlobalFence() {
  // No static of C++: it takes milliseconds, and a child that is forked meanwhile would wait for
  // its end for ever. Twice does no harm, and a child has what its parent had.
  enum Registered : int8_t { kUnknown, kNo, kYes };
  static constinit std::atomic<Registered> registered{kUnknown};
  if (registered.load(std::memory_order_relaxed) == kUnknown) {
    const int saved = errno;
    const bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    errno = saved;
    registered.store(done ? kYes : kNo, std::memory_order_relaxed);
  }
  return registered.load(std::memory_order_relaxed) == kYes;
}

void GlobalFence() {
  FullFence();
  if (!RegisterGlobalFence()) return;
  const int saved = errno;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) OutwaitStores();
  errno = saved;
}

}  // namespace viaduct::verbs::shm
