// The fence between processes: the poster of a message does a plain load, the rare side that goes
// to sleep pays a membarrier for every process that takes part.
#ifndef VIADUCT_VERBS_SOFT_SHM_FENCE_H_
#define VIADUCT_VERBS_SOFT_SHM_FENCE_H_

namespace viaduct::verbs::shm {

// Registers this process with the kernel (MEMBARRIER_CMD_GLOBAL_EXPEDITED covers registered
// processes only). False: the kernel refuses, and posters of all pairs of this process use a real
// fence. Idempotent; the peer learns the result in the handshake.
bool RegisterGlobalFence();

// Every thread of every registered process executes a full fence.
void GlobalFence();

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_FENCE_H_
