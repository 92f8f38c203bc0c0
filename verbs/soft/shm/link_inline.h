// Functions that several of link_send.cc, link_receive.cc and link_replies.cc call, under the lock
// of the ring that they serve.
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

// After a store, for which a peer with `flag` set does not look by itself. Whoever sets a flag and
// then looks for the last time pays for the fence (GlobalFence), unless a side cannot do that.
inline void ShmLink::MarkPeerIf(const std::atomic<uint32_t>& flag) {
  if (route_->needs_fence()) [[unlikely]]
    FullFence();
  std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the load after the store
  if (flag.load(std::memory_order_relaxed) != 0) [[unlikely]]
    route_->MarkPeer(id);
}

inline void ShmLink::AfterPublish() { MarkPeerIf(peer_line_->armed); }

inline void ShmLink::TellStarving() { MarkPeerIf(peer_line_->starving); }

// In batches: `returned` is contended while a sender waits.
inline void ShmLink::HandBack(uint32_t chunk) {
  constexpr int kBatch = 4;
  back_mask_ |= uint64_t{1} << chunk;
  if (absl::popcount(back_mask_) == kBatch) FlushBack();
}

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_LINK_INLINE_H_
