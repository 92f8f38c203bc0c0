#include "verbs/soft/work_queue.h"

#include <algorithm>
#include <type_traits>

#include "absl/numeric/bits.h"
#include "verbs/base/block.h"

namespace viaduct::verbs {

template <typename Entry>
bool WorkQueue<Entry>::Allow(uint32_t requests, uint32_t segments) {
  segments = std::max({segments, max_segments(), 1u});
  if (spill_ != nullptr && segments != max_segments() && !Move(slots_, true, segments))
    return false;
  max_segments_.store(segments, std::memory_order_relaxed);
  max_requests_ = std::max({requests, max_requests_, 1u});
  room_ = std::min(slots_, uint64_t{max_requests_});
  return true;
}

template <typename Entry>
bool WorkQueue<Entry>::MakeRoom(size_t segments) {
  const uint64_t used =
      posted.load(std::memory_order_relaxed) - reaped.load(std::memory_order_relaxed);
  if (used >= max_requests_) return false;
  uint64_t slots = std::max(slots_, kFirstSlots);
  if (used == slots) slots *= 2;
  const bool spill = spill_ != nullptr || segments > 1;
  return HasRoom(segments) || Move(slots, spill, max_segments());
}

template <typename Entry>
bool WorkQueue<Entry>::MakeAllRoom() {
  const uint64_t slots = absl::bit_ceil(uint64_t{max_requests_});
  const bool spill = spill_ != nullptr || max_segments() > 1;
  if (slots_ >= slots && (spill_ != nullptr || !spill)) return true;
  return Move(std::max(slots, slots_), spill, max_segments());
}

template <typename Entry>
bool WorkQueue<Entry>::Move(uint64_t slots, bool spill, uint32_t segments) {
  // Not initialized: an entry is written when it is posted.
  auto* entries = static_cast<Entry*>(AllocateBlock(slots * sizeof(Entry)));
  const size_t spill_bytes = slots * segments * sizeof(Segment);
  auto* spilled = spill ? static_cast<Segment*>(AllocateBlock(spill_bytes)) : nullptr;
  if (entries == nullptr || (spill && spilled == nullptr)) {
    FreeBlock(entries, slots * sizeof(Entry));
    FreeBlock(spilled, spill_bytes);
    return false;
  }
  for (uint64_t n = reaped.load(std::memory_order_relaxed);
       n != posted.load(std::memory_order_relaxed); n++) {
    entries[n & (slots - 1)] = at(n);
    if (at(n).segment_count > 1) {
      absl::Span<const Segment> from = this->segments(n);
      std::copy(from.begin(), from.end(), spilled + (n & (slots - 1)) * segments);
    } else if constexpr (std::is_same_v<Entry, SendEntry>) {
      if (spill_ == nullptr || !IsFetch(at(n).opcode)) continue;
      const Operands kept = operands(n);
      std::memcpy(&spilled[(n & (slots - 1)) * segments], &kept, sizeof kept);
    }
  }
  Release();
  entries_ = entries;
  spill_ = spilled;
  slots_ = slots;
  mask_ = slots - 1;
  room_ = std::min(slots_, uint64_t{max_requests_});
  return true;
}

template <typename Entry>
void WorkQueue<Entry>::Release() {
  FreeBlock(entries_, slots_ * sizeof(Entry));
  FreeBlock(spill_, slots_ * max_segments() * sizeof(Segment));
}

template class WorkQueue<SendEntry>;
template class WorkQueue<ReceiveEntry>;

}  // namespace viaduct::verbs
