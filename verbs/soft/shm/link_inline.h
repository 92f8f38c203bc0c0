// Functions for both inbound rings of a link (link_receive.cc, link_replies.cc). The inbound lock
// is held.
#ifndef VIADUCT_VERBS_SOFT_SHM_LINK_INLINE_H_
#define VIADUCT_VERBS_SOFT_SHM_LINK_INLINE_H_

#include <atomic>
#include <cstdint>

#include "absl/numeric/bits.h"
#include "verbs/base/asymmetric_fence.h"
#include "verbs/soft/shm/arena_format.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {

inline bool ShmLink::ChunkIsValid(const Word& word, const ChunkLead& lead) const {
  return word.slots == 1 && lead.chunk < kChunks && word.bytes <= kChunkBytes;
}

inline void ShmLink::TellStarving() {
  if (route_->needs_fence()) [[unlikely]]
    FullFence();
  std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the load after the store
  if (peer_line_->starving.load(std::memory_order_relaxed) != 0) [[unlikely]]
    route_->MarkPeer(id);
}

// In batches: `returned` is contended while a sender waits.
inline void ShmLink::HandBack(uint32_t chunk) {
  constexpr int kBatch = 4;
  back_mask_ |= uint64_t{1} << chunk;
  if (absl::popcount(back_mask_) == kBatch) FlushBack();
}

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_LINK_INLINE_H_
