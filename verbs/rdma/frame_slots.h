// Room for the frames of a connection's messages (verbs/FORMAT.md): one slot for each request of a
// queue, in registered memory of our own.
#ifndef VIADUCT_VERBS_RDMA_FRAME_SLOTS_H_
#define VIADUCT_VERBS_RDMA_FRAME_SLOTS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "verbs/frame_format.h"
#include "verbs/rdma/bounce_pool.h"

namespace viaduct::verbs::rdma {

class FrameSlots {
 public:
  // False: no memory.
  bool Allocate(BouncePool& pool, uint32_t count) {
    memory_ = pool.Take(size_t{count} * kFrameBytes);
    return memory_.memory != nullptr;
  }
  void GiveBack(BouncePool& pool) { pool.GiveBack(memory_); }
  bool empty() const { return memory_.memory == nullptr; }

  std::span<uint8_t, kFrameBytes> At(uint32_t slot) const {
    return std::span<uint8_t, kFrameBytes>(memory_.memory + size_t{slot} * kFrameBytes,
                                           kFrameBytes);
  }
  ibv_sge SegmentAt(uint32_t slot) const {
    return {reinterpret_cast<uint64_t>(At(slot).data()), kFrameBytes, memory_.registration->lkey};
  }

 private:
  Bounce memory_;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_FRAME_SLOTS_H_
