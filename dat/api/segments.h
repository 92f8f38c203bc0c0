// The local segments of a post.
#ifndef VIADUCT_DAT_API_SEGMENTS_H_
#define VIADUCT_DAT_API_SEGMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "dat/api/abi.h"
#include "dat/api/limits.h"
#include "dat/api/return_code.h"
#include "verbs/device.h"

namespace viaduct::dat {

// A request's local segments, converted. They are parameters 2 and 3 of every post.
class Segments {
 public:
  DAT_RETURN Take(DAT_COUNT count, const DAT_LMR_TRIPLET* iov) {
    if (count < 0 || count > kMaxSegments) return BadParameter(2);
    if (count > 0 && iov == nullptr) return BadParameter(3);
    count_ = static_cast<size_t>(count);
    for (size_t i = 0; i < count_; ++i) {
      if (!ToSegment(iov[i], &segments_[i])) return Failure(DAT_LENGTH_ERROR);
      bytes_ += segments_[i].length;
    }
    return DAT_SUCCESS;
  }
  // Keeps only the first `bytes` bytes.
  void Trim(uint64_t bytes) {
    if (bytes_ <= bytes) return;
    bytes_ = bytes;
    for (size_t i = 0; i < count_; ++i) {
      segments_[i].length = static_cast<uint32_t>(std::min<uint64_t>(segments_[i].length, bytes));
      bytes -= segments_[i].length;
    }
  }
  uint64_t bytes() const { return bytes_; }
  absl::Span<const verbs::Segment> span() const { return {segments_, count_}; }

 private:
  verbs::Segment segments_[kMaxSegments];
  size_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_SEGMENTS_H_
