#include "verbs/soft/shm/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "verbs/base/asymmetric_fence.h"
#include "verbs/base/made_once.h"

namespace viaduct::verbs::shm {
namespace {

// It takes milliseconds.
bool Register() {
  const int saved = errno;
  const bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  errno = saved;
  return done;
}

}  // namespace

// A forked child inherits its parent's registration.
bool RegisterGlobalFence() { return MadeOnce<&Register>(); }

void GlobalFence() {
  FullFence();
  if (!RegisterGlobalFence()) return;
  const int saved = errno;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) OutwaitStores();
  errno = saved;
}

}  // namespace viaduct::verbs::shm
