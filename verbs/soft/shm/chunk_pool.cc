#include "verbs/soft/shm/chunk_pool.h"

#include "absl/numeric/bits.h"

namespace viaduct::verbs::shm {

void ChunkPool::Collect() {
  std::atomic<uint64_t>& returned = arena_.direction(direction_).returned;
  if (returned.load(std::memory_order_relaxed) == 0) return;
  uint64_t back = returned.exchange(0, std::memory_order_acquire);
  // Even a hostile peer can return only chunks that it had.
  back &= lent_.fetch_and(~back, std::memory_order_acq_rel);
  free_.fetch_or(back, std::memory_order_release);
}

bool ChunkPool::Grow() {
  const uint32_t paid = paid_.load(std::memory_order_relaxed);
  if (paid == kChunks || !grow_lock_.TryLock()) return false;
  bool grown = false;
  if (paid == paid_.load(std::memory_order_relaxed) &&
      arena_.PayChunks(direction_, paid, kChunkStep)) {
    free_.fetch_or(((uint64_t{1} << kChunkStep) - 1) << paid, std::memory_order_release);
    paid_.store(paid + kChunkStep, std::memory_order_relaxed);
    grown = true;
  }
  grow_lock_.Unlock();
  return grown;
}

int ChunkPool::Take(uint32_t in_flight) {
  uint64_t free = free_.load(std::memory_order_acquire);
  if (static_cast<uint32_t>(absl::popcount(free)) <= in_flight) {
    Collect();
    free = free_.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(absl::popcount(free)) <= in_flight) {
      if (!Grow()) return -1;
      free = free_.load(std::memory_order_acquire);
    }
  }
  while (free != 0) {
    const uint64_t bit = free & -free;  // the lowest: warmest in the cache
    if (free_.compare_exchange_weak(free, free & ~bit, std::memory_order_acquire)) {
      lent_.fetch_or(bit, std::memory_order_relaxed);
      return absl::countr_zero(bit);
    }
  }
  return -1;
}

void ChunkPool::PutBack(uint32_t chunk) {
  const uint64_t bit = uint64_t{1} << chunk;
  lent_.fetch_and(~bit, std::memory_order_relaxed);
  free_.fetch_or(bit, std::memory_order_release);
}

}  // namespace viaduct::verbs::shm
