// A full fence whose cost falls on one side: the frequent side pays a compiler barrier, the rare
// side a membarrier system call that puts a full fence into every running thread of the process.
// Where the kernel has no membarrier both sides pay a real fence.
#ifndef VIADUCT_VERBS_BASE_ASYMMETRIC_FENCE_H_
#define VIADUCT_VERBS_BASE_ASYMMETRIC_FENCE_H_

#include <atomic>

namespace viaduct::verbs {

// x86-64 only, like the rest of the data path (tools/build_rules/platform.bzl).
inline void FullFence() { __asm__ __volatile__("mfence" ::: "memory"); }

namespace internal {
// True, the safe value, until PrepareFences has found membarrier. Not inline, since each shared
// library would have one of its own.
extern std::atomic<bool> light_fence_is_full;
}  // namespace internal

// Registers the process with the kernel. Before the first HeavyFence; idempotent, any thread.
void PrepareFences();

inline void LightFence() {
  if (internal::light_fence_is_full.load(std::memory_order_relaxed)) {
    FullFence();
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

// If the kernel refuses membarrier later, because the program has installed a system-call filter,
// both sides pay from then on.
void HeavyFence();

// Replaces a heavy fence that the kernel refuses: gives the earlier stores of other threads time to
// leave their processors' store buffers, which takes nanoseconds; they get 100 us.
void OutwaitStores();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ASYMMETRIC_FENCE_H_
