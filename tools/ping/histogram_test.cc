#include "tools/ping/histogram.h"

#include "gtest/gtest.h"

namespace viaduct::ping {
namespace {

TEST(Histogram, WithoutSamples) {
  const Histogram none;
  EXPECT_EQ(none.count(), 0u);
  EXPECT_EQ(none.min(), 0u);
  EXPECT_EQ(none.max(), 0u);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.Percentile(0.5), 0u);
  EXPECT_TRUE(none.Buckets().empty());
}

// Each sample lies below the end of its bucket, and not more than an eighth below.
TEST(Histogram, BucketsAreNarrow) {
  for (uint64_t value = 0; value < uint64_t{1} << 40; value += 1 + value / 37) {
    Histogram one;
    one.Add(value);
    const auto buckets = one.Buckets();
    ASSERT_EQ(buckets.size(), 1u);
    EXPECT_LT(value, buckets[0].below);
    EXPECT_LE(buckets[0].below, value + value / 8 + 1) << value;
    EXPECT_EQ(one.Percentile(0.5), value)
        << "neither below the smallest sample nor above the largest";
  }
}

TEST(Histogram, Percentiles) {
  Histogram histogram;
  for (uint64_t i = 1; i <= 1000; ++i) histogram.Add(i * 1000);
  EXPECT_EQ(histogram.min(), 1000u);
  EXPECT_EQ(histogram.max(), 1000000u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 500500);
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.5)), 500000, 1000);
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.99)), 990000, 1000);
  EXPECT_EQ(histogram.Percentile(1), 1000000u);
  uint64_t count = 0, last = 0;
  for (const Histogram::Bucket& bucket : histogram.Buckets()) {
    EXPECT_GT(bucket.below, last);
    last = bucket.below;
    count += bucket.count;
  }
  EXPECT_EQ(count, 1000u);
}

// A percentile is right if the samples lie evenly, and inside its bucket if they do not.
TEST(Histogram, APercentileLiesInsideOfItsBucket) {
  Histogram even, few;
  for (uint64_t i = 9216; i < 10240; ++i) even.Add(i);
  EXPECT_NEAR(static_cast<double>(even.Percentile(0.5)), 9728, 1);
  for (uint64_t i : {2, 3, 3, 3, 9216, 9217, 20000}) few.Add(i);
  EXPECT_EQ(few.Percentile(0.5), 3u) << "a small value has a bucket of its own";
  EXPECT_GE(few.Percentile(0.8), 9216u);
  EXPECT_LT(few.Percentile(0.8), 10240u);
}

TEST(Histogram, TwoMakeOne) {
  Histogram one, other, both;
  for (uint64_t n : {5, 100, 7000}) {
    one.Add(n);
    both.Add(n);
  }
  for (uint64_t n : {3, 90000}) {
    other.Add(n);
    both.Add(n);
  }
  one.Add(other);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.min(), 3u);
  EXPECT_EQ(one.max(), 90000u);
  EXPECT_EQ(one.mean(), both.mean());
  EXPECT_EQ(one.Percentile(0.5), both.Percentile(0.5));
  one.Add(Histogram());
  EXPECT_EQ(one.min(), 3u);
}

}  // namespace
}  // namespace viaduct::ping
