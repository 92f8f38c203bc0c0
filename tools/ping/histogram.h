// Latencies by size: buckets that are an eighth of a power of two wide, so that a billion samples
// take no more room than one. A percentile is interpolated inside its bucket, as if the samples lay
// there evenly: if they do not, it is off by less than an eighth, however long the tail is.
#ifndef VIADUCT_TOOLS_PING_HISTOGRAM_H_
#define VIADUCT_TOOLS_PING_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace viaduct::ping {

class Histogram {
 public:
  void Add(uint64_t nanoseconds);
  void Add(const Histogram& other);

  uint64_t count() const { return count_; }
  // 0 without a sample.
  uint64_t min() const { return count_ != 0 ? min_ : 0; }
  uint64_t max() const { return max_; }
  double mean() const;
  // The value at or below which `fraction` of all samples lie; from min() to max().
  uint64_t Percentile(double fraction) const;

  struct Bucket {
    uint64_t below;  // samples less than this, and not in an earlier bucket
    uint64_t count;
  };
  // The buckets that hold a sample.
  std::vector<Bucket> Buckets() const;

 private:
  static constexpr int kSteps = 8;
  static size_t IndexOf(uint64_t nanoseconds);
  static uint64_t UpperEnd(size_t index);

  std::array<uint64_t, 64 * kSteps> buckets_ = {};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
};

}  // namespace viaduct::ping

#endif  // VIADUCT_TOOLS_PING_HISTOGRAM_H_
