#include "verbs/rdma/work_queue.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "verbs/base/block.h"

namespace viaduct::verbs::rdma {

WorkQueue::~WorkQueue() {
  FreeBlock(records_, (size_t{mask_} + 1) * sizeof(WorkRecord));
  FreeBlock(segments_, SegmentBytes(size_t{mask_} + 1, max_segments_));
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
      segments = static_cast<Segment*>(AllocateBlock(SegmentBytes(slots, kept)));
    }
    if (records == nullptr || (kept != 0 && segments == nullptr)) {
      FreeBlock(records, slots * sizeof(WorkRecord));
      FreeBlock(segments, SegmentBytes(slots, kept));
      return false;
    }
    for (uint32_t i = head(), end = tail(); i != end; ++i) {
      const WorkRecord& record = At(i);
      const uint32_t slot = i & (slots - 1);
      records[slot] = record;
      if (record.segments == 0) continue;
      std::copy_n(SegmentsOf(record), record.segments,
                  segments + SegmentPlace(slot, slots, kept, record.segments));
    }
    FreeBlock(records_, (size_t{mask_} + 1) * sizeof(WorkRecord));
    FreeBlock(segments_, SegmentBytes(size_t{mask_} + 1, max_segments_));
    records_ = records;
    segments_ = segments;
    mask_ = slots - 1;
    max_segments_ = kept;
  }
  limit_ = std::max(limit, limit_);
  return true;
}

}  // namespace viaduct::verbs::rdma
