#include "tools/vipping/parameters.h"

#include "gtest/gtest.h"

namespace viaduct::vipping {
namespace {

TEST(Parameters, SurviveTheJourney) {
  Parameters sent;
  sent.test = vipping::Test::kBandwidth;
  sent.operation = Operation::kWrite;
  sent.completion = Completion::kCq;
  sent.bytes = 0x123456;
  sent.depth = 500;
  const auto bytes = Encode(sent);
  const auto got = Decode(bytes.data(), bytes.size());
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->test, sent.test);
  EXPECT_EQ(got->operation, sent.operation);
  EXPECT_EQ(got->completion, sent.completion);
  EXPECT_EQ(got->bytes, sent.bytes);
  EXPECT_EQ(got->depth, sent.depth);
}

// What a stranger may send.
TEST(Parameters, OthersAreRefused) {
  const auto good = Encode(Parameters());
  EXPECT_FALSE(Decode(good.data(), good.size() - 1).has_value());
  for (size_t i = 0; i < 8; ++i) {
    auto bytes = good;
    bytes[i] = 0xff;
    EXPECT_FALSE(Decode(bytes.data(), bytes.size()).has_value()) << i;
  }
  Parameters wrong;
  wrong.bytes = kMaxBytes + 1;
  auto bytes = Encode(wrong);
  EXPECT_FALSE(Decode(bytes.data(), bytes.size()).has_value());
  for (uint32_t depth : {0u, 1u, kMaxDepth + 1}) {
    wrong = Parameters();
    wrong.depth = depth;
    bytes = Encode(wrong);
    EXPECT_FALSE(Decode(bytes.data(), bytes.size()).has_value()) << depth;
  }
  wrong = Parameters();
  wrong.operation = Operation::kWrite;
  wrong.bytes = 0;
  bytes = Encode(wrong);
  EXPECT_FALSE(Decode(bytes.data(), bytes.size()).has_value());
}

}  // namespace
}  // namespace viaduct::vipping
