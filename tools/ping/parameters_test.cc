#include "tools/ping/parameters.h"

#include "gtest/gtest.h"

namespace viaduct::ping {
namespace {

enum class Kind : uint8_t { kLatency, kBandwidth, kOther };
enum class Way : uint8_t { kSend, kWrite };
enum class Look : uint8_t { kPoll, kSleep };
constexpr auto NamesOf(Kind) { return std::to_array({"latency", "bandwidth", "other"}); }
constexpr auto NamesOf(Way) { return std::to_array({"send", "write"}); }
constexpr auto NamesOf(Look) { return std::to_array({"poll", "sleep"}); }

using TestParameters = Parameters<Kind, Way, Look>;
constexpr Protocol kProtocol = {'t', 'e', 's', 't', 1};

TEST(Names, AreParsed) {
  Kind kind = Kind::kLatency;
  EXPECT_TRUE(Parse("other", &kind));
  EXPECT_EQ(kind, Kind::kOther);
  EXPECT_FALSE(Parse("oth", &kind));
  EXPECT_FALSE(Parse("", &kind));
  EXPECT_EQ(kind, Kind::kOther);
  EXPECT_STREQ(NameOf(Look::kSleep), "sleep");
}

TEST(Head, BytesInTheirOrder) {
  TestParameters sent;
  sent.test = Kind::kOther;
  sent.completion = Look::kSleep;
  sent.bytes = 0x010203;
  sent.depth = 0x304;
  uint8_t bytes[kHeadBytes];
  EncodeHead(kProtocol, sent, bytes);
  const uint8_t wanted[] = {'t', 'e', 's', 't', 1, 1, 0, 2, 0, 1, 2, 3, 0, 0, 3, 4};
  EXPECT_EQ(std::memcmp(bytes, wanted, sizeof wanted), 0);
  TestParameters got;
  ASSERT_TRUE(DecodeHead(kProtocol, bytes, sizeof bytes, &got));
  EXPECT_EQ(got.test, sent.test);
  EXPECT_EQ(got.operation, sent.operation);
  EXPECT_EQ(got.completion, sent.completion);
  EXPECT_EQ(got.bytes, sent.bytes);
  EXPECT_EQ(got.depth, sent.depth);
  EXPECT_FALSE(DecodeHead(kProtocol, bytes, sizeof bytes - 1, &got));
  EXPECT_FALSE(DecodeHead({'t', 'e', 's', 't', 2}, bytes, sizeof bytes, &got));
}

TEST(Head, ValuesWithoutANameAreRefused) {
  uint8_t good[kHeadBytes];
  EncodeHead(kProtocol, TestParameters(), good);
  const uint8_t first_wrong[] = {2, 2, 3};
  for (size_t i = 0; i < 3; ++i) {
    TestParameters got;
    uint8_t bytes[kHeadBytes];
    std::memcpy(bytes, good, sizeof bytes);
    bytes[5 + i] = static_cast<uint8_t>(first_wrong[i] - 1);
    EXPECT_TRUE(DecodeHead(kProtocol, bytes, sizeof bytes, &got)) << i;
    bytes[5 + i] = first_wrong[i];
    EXPECT_FALSE(DecodeHead(kProtocol, bytes, sizeof bytes, &got)) << i;
  }
}

TEST(Parameters, OnlyAPolledWriteOfARoundTripIsSilent) {
  for (Kind kind : {Kind::kLatency, Kind::kBandwidth}) {
    for (Way way : {Way::kSend, Way::kWrite}) {
      for (Look look : {Look::kPoll, Look::kSleep}) {
        const TestParameters parameters = {kind, way, look};
        EXPECT_EQ(parameters.silent_write(),
                  kind == Kind::kLatency && way == Way::kWrite && look == Look::kPoll);
      }
    }
  }
  for (uint64_t n = 0; n < 600; ++n) {
    EXPECT_NE(TestParameters::Mark(n), 0);
    EXPECT_NE(TestParameters::Mark(n), TestParameters::Mark(n + 1));
  }
}

}  // namespace
}  // namespace viaduct::ping
