#include "tools/ping/numbers.h"

#include "gtest/gtest.h"

namespace viaduct::ping {
namespace {

TEST(ParseCount, UnitsAndLimits) {
  uint64_t value = 0;
  EXPECT_TRUE(ParseCount("0", 0, 10, &value));
  EXPECT_EQ(value, 0u);
  EXPECT_TRUE(ParseCount("10", 0, 10, &value));
  EXPECT_EQ(value, 10u);
  EXPECT_TRUE(ParseCount("3K", 0, 4096, &value));
  EXPECT_EQ(value, 3072u);
  EXPECT_TRUE(ParseCount("2m", 0, 2u << 20, &value));
  EXPECT_EQ(value, 2u << 20);
  EXPECT_TRUE(ParseCount("18446744073709551615", 1, UINT64_MAX, &value));
  EXPECT_EQ(value, UINT64_MAX);
}

TEST(ParseCount, WhatIsNoSuchNumber) {
  uint64_t value = 7;
  for (const char* text :
       {"", "x", "-1", "1x", "1KK", "K", "1", "11", "1K", "1 ", "0x5", "+5", " 5",
        " -18446744073709551608", "18446744073709551616", "18014398509481984K"}) {
    EXPECT_FALSE(ParseCount(text, 2, 10, &value)) << text;
  }
  EXPECT_FALSE(ParseCount("18014398509481985K", 0, UINT64_MAX, &value)) << "wraps";
  EXPECT_EQ(value, 7u);
}

TEST(ParseSeconds, AnyPartOfASecond) {
  double value = 0;
  EXPECT_TRUE(ParseSeconds("0.25", &value));
  EXPECT_EQ(value, 0.25);
  EXPECT_TRUE(ParseSeconds("1e6", &value));
  EXPECT_EQ(value, 1e6);
}

TEST(ParseSeconds, WhatIsNoSuchTime) {
  double value = 7;
  for (const char* text : {"", "x", "0", "-1", "1s", "nan", "inf", "1e7", " 1", "0x1"}) {
    EXPECT_FALSE(ParseSeconds(text, &value)) << text;
  }
  EXPECT_EQ(value, 7);
}

}  // namespace
}  // namespace viaduct::ping
