#include "verbs/soft/work_queue.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "verbs/base/block.h"

namespace viaduct::verbs {

template <typename Entry>
bool WorkQueue<Entry>::Reserve(uint32_t requests, uint32_t segments) {
  requests = std::max({requests, max_requests_, 1u});
  segments = std::max({segments, max_segments_, 1u});
  const uint64_t slots = absl::bit_ceil(uint64_t{requests});
  if (entries_ != nullptr && slots - 1 == mask_ && segments == max_segments_) {
    max_requests_ = requests;
    return true;
  }
  const size_t entry_bytes = slots * sizeof(Entry);
  const size_t spill_bytes = segments == 1 ? 0 : slots * segments * sizeof(Segment);
  // Not initialized: an entry is written when it is posted.
  void* memory = AllocateBlock(entry_bytes + spill_bytes);
  if (memory == nullptr) return false;
  Entry* entries = static_cast<Entry*>(memory);
  auto* spill = reinterpret_cast<Segment*>(static_cast<char*>(memory) + entry_bytes);
  for (uint64_t n = reaped.load(std::memory_order_relaxed);
       n != posted.load(std::memory_order_relaxed); n++) {
    entries[n & (slots - 1)] = at(n);
    if (at(n).segment_count > 1) {
      absl::Span<const Segment> from = this->segments(n);
      std::copy(from.begin(), from.end(), spill + (n & (slots - 1)) * segments);
    }
  }
  Release();
  bytes_ = entry_bytes + spill_bytes;
  entries_ = entries;
  spill_ = spill;
  mask_ = slots - 1;
  max_requests_ = requests;
  max_segments_ = segments;
  return true;
}

template <typename Entry>
void WorkQueue<Entry>::Release() {
  FreeBlock(entries_, bytes_);
}

template class WorkQueue<SendEntry>;
template class WorkQueue<ReceiveEntry>;

}  // namespace viaduct::verbs
