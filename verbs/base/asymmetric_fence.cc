#include "verbs/base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "verbs/base/clock.h"

namespace viaduct::verbs {

std::atomic<bool> internal::light_fence_is_full{true};

namespace {

bool Register() {
  const int saved = errno;
  const bool registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  errno = saved;
  return registered;
}

}  // namespace

void PrepareFences() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!Register()) return;  // a forked child inherits the registration
    internal::light_fence_is_full.store(false, std::memory_order_release);
  });
}

void HeavyFence() {
  PrepareFences();
  FullFence();
  if (internal::light_fence_is_full.load(std::memory_order_relaxed)) return;
  const int saved = errno;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    internal::light_fence_is_full.store(true, std::memory_order_seq_cst);
    OutwaitStores();
  }
  errno = saved;
}

// Makes no system call, which a filter may refuse, too.
void OutwaitStores() {
  const Nanos end = MonotonicNow() + 100 * kNanosPerMicro;
  while (MonotonicNow() < end) {
  }
}

}  // namespace viaduct::verbs
