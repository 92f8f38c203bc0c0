// The sender's half of the pool of one direction: which chunks are free, and how many a connection
// may take. It lies in private memory. The consumer hands chunks back through
// DirectionBlock::returned, not through a connection's credits, where an idle connection would
// keep them.
#ifndef VIADUCT_VERBS_SOFT_SHM_CHUNK_POOL_H_
#define VIADUCT_VERBS_SOFT_SHM_CHUNK_POOL_H_

#include <atomic>
#include <cstdint>

#include "verbs/base/lock.h"
#include "verbs/soft/shm/arena.h"

namespace viaduct::verbs::shm {

class ChunkPool {
 public:
  // The pool for payload on its way to side `d`.
  ChunkPool(Arena& arena, int d) : arena_(arena), direction_(d) {}

  // A free chunk, or -1. A connection that has `in_flight` chunks gets another only while more
  // than that are free: n busy connections end up with n of n + 1 equal parts, and the next one
  // always finds some. Any thread; lock-free except for the few times when the pool grows.
  int Take(uint32_t in_flight);
  // Puts back a chunk that was taken and not published.
  void PutBack(uint32_t chunk);
  unsigned char* data(uint32_t chunk) const { return arena_.chunk(direction_, chunk); }

 private:
  void Collect();
  bool Grow();

  Arena& arena_;
  const int direction_;
  std::atomic<uint64_t> free_{(uint64_t{1} << kFirstChunks) - 1};
  std::atomic<uint64_t> lent_{0};
  std::atomic<uint32_t> paid_{kFirstChunks};
  SpinLock grow_lock_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_CHUNK_POOL_H_
