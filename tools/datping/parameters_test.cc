#include "tools/datping/parameters.h"

#include "gtest/gtest.h"

namespace viaduct::datping {
namespace {

TEST(Parameters, TravelUnchanged) {
  Parameters sent, got;
  sent.test = datping::Test::kBandwidth;
  sent.operation = Operation::kRead;
  sent.completion = Completion::kCno;
  sent.bytes = 123456;
  sent.depth = 17;
  sent.connections = 9;
  Place place;
  const Wire wire = Encode(sent, {0x1122334455667788, 0x99aabbcc});
  ASSERT_TRUE(Decode(wire.data(), wire.size(), &got, &place));
  EXPECT_EQ(got.test, sent.test);
  EXPECT_EQ(got.operation, sent.operation);
  EXPECT_EQ(got.completion, sent.completion);
  EXPECT_EQ(got.bytes, sent.bytes);
  EXPECT_EQ(got.depth, sent.depth);
  EXPECT_EQ(got.connections, sent.connections);
  EXPECT_EQ(place.address, 0x1122334455667788u);
  EXPECT_EQ(place.context, 0x99aabbccu);
}

TEST(Parameters, WhatIsNotThatIsRefused) {
  Parameters got;
  Place place;
  const Wire good = Encode(Parameters(), Place());
  EXPECT_FALSE(Decode(good.data(), good.size() - 1, &got, &place));
  EXPECT_FALSE(Decode(nullptr, 0, &got, &place));
  // Magic, version, the three choices, and the upper bytes of the three numbers.
  for (size_t i : {0, 3, 4, 5, 6, 7, 8, 12, 16}) {
    Wire bad = good;
    bad[i] = 0xee;
    EXPECT_FALSE(Decode(bad.data(), bad.size(), &got, &place)) << i;
  }
  Parameters empty_write;
  empty_write.operation = Operation::kWrite;
  empty_write.bytes = 0;
  const Wire wire = Encode(empty_write, Place());
  EXPECT_FALSE(Decode(wire.data(), wire.size(), &got, &place));
}

TEST(Parameters, NamesAreParsed) {
  using datping::Test;  // not googletest's
  for (Test test : {Test::kLatency, Test::kBandwidth, Test::kConnect}) {
    Test parsed;
    ASSERT_TRUE(Parse(NameOf(test), &parsed));
    EXPECT_EQ(parsed, test);
  }
  Operation operation;
  EXPECT_TRUE(Parse("read", &operation));
  EXPECT_EQ(operation, Operation::kRead);
  Completion completion;
  EXPECT_TRUE(Parse("cno", &completion));
  EXPECT_EQ(completion, Completion::kCno);
  EXPECT_FALSE(Parse("cq", &completion));
}

}  // namespace
}  // namespace viaduct::datping
