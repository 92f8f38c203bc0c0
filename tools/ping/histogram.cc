#include "tools/ping/histogram.h"

#include <algorithm>
#include <bit>

namespace viaduct::ping {

// Below kSteps each value has a bucket of its own; above, the three bits after the leading one
// select one of the eight buckets of its power of two.
size_t Histogram::IndexOf(uint64_t nanoseconds) {
  if (nanoseconds < kSteps) return nanoseconds;
  const int shift = std::bit_width(nanoseconds) - 4;
  return static_cast<size_t>(shift + 1) * kSteps + ((nanoseconds >> shift) & (kSteps - 1));
}

uint64_t Histogram::UpperEnd(size_t index) {
  if (index < kSteps) return index + 1;
  const size_t shift = index / kSteps - 1;
  return (kSteps + index % kSteps + 1) << shift;
}

void Histogram::Add(uint64_t nanoseconds) {
  ++buckets_[IndexOf(nanoseconds)];
  ++count_;
  sum_ += nanoseconds;
  min_ = std::min(min_, nanoseconds);
  max_ = std::max(max_, nanoseconds);
}

void Histogram::Add(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::mean() const {
  return count_ != 0 ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
}

uint64_t Histogram::Percentile(double fraction) const {
  const double wanted = fraction * static_cast<double>(count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] != 0 && static_cast<double>(seen + buckets_[i]) >= wanted) {
      const uint64_t least = std::max(i != 0 ? UpperEnd(i - 1) : 0, min_);
      const uint64_t most = std::min(UpperEnd(i) - 1, max_);
      const double part = (wanted - static_cast<double>(seen)) / static_cast<double>(buckets_[i]);
      return least + static_cast<uint64_t>(part * static_cast<double>(most - least));
    }
    seen += buckets_[i];
  }
  return max_;
}

std::vector<Histogram::Bucket> Histogram::Buckets() const {
  std::vector<Bucket> result;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] != 0) result.push_back({UpperEnd(i), buckets_[i]});
  }
  return result;
}

}  // namespace viaduct::ping
