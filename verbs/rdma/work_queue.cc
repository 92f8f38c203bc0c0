#include "verbs/rdma/work_queue.h"

#include <algorithm>
#include <cstring>

#include "absl/numeric/bits.h"
#include "verbs/base/block.h"

namespace viaduct::verbs::rdma {

WorkQueue::~WorkQueue() {
  FreeBlock(records_, (size_t{mask_} + 1) * sizeof(WorkRecord));
  FreeBlock(segments_, (size_t{mask_} + 1) * max_segments_ * sizeof(Segment));
}

bool WorkQueue::Resize(uint32_t limit, uint32_t max_segments) {
  const uint32_t room = absl::bit_ceil(std::max(limit, uint32_t{1}));
  const bool fits = records_ != nullptr && room <= mask_ + 1;
  if (!fits || max_segments > max_segments_) {
    const uint32_t slots = fits ? mask_ + 1 : room;
    const uint32_t kept = std::max(max_segments, max_segments_);
    auto* records = static_cast<WorkRecord*>(AllocateBlock(slots * sizeof(WorkRecord)));
    Segment* segments = nullptr;
    if (kept != 0) {
      segments = static_cast<Segment*>(AllocateBlock(size_t{slots} * kept * sizeof(Segment)));
    }
    if (records == nullptr || (kept != 0 && segments == nullptr)) {
      FreeBlock(records, slots * sizeof(WorkRecord));
      FreeBlock(segments, size_t{slots} * kept * sizeof(Segment));
      return false;
    }
    for (uint32_t i = head(), end = tail(); i != end; ++i) {
      records[i & (slots - 1)] = At(i);
      std::copy_n(SegmentsAt(i), max_segments_, segments + size_t{i & (slots - 1)} * kept);
    }
    FreeBlock(records_, (size_t{mask_} + 1) * sizeof(WorkRecord));
    FreeBlock(segments_, (size_t{mask_} + 1) * max_segments_ * sizeof(Segment));
    records_ = records;
    segments_ = segments;
    mask_ = slots - 1;
    max_segments_ = kept;
  }
  limit_ = std::max(limit, limit_);
  return true;
}

}  // namespace viaduct::verbs::rdma
