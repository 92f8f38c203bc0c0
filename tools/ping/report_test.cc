#include "tools/ping/report.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace viaduct::ping {
namespace {

// Four messages of one, two, three and four microseconds in half a second.
Result Four() {
  Result result;
  for (uint64_t n = 1; n <= 4; ++n) result.latencies.Add(n * 1000);
  result.messages = 4;
  result.nanoseconds = 500'000'000;
  return result;
}

TEST(Report, LinesOfText) {
  std::string text;
  PrintMessages(Four(), &text);
  PrintRate(Four(), 1 << 20, &text);
  PrintLatencies("a read", Four().latencies, /*each=*/false, &text);
  EXPECT_EQ(
      text,
      "  4 messages in 0.500 s\n"
      "  8.0 MiB/s, 8 messages/s\n"
      "  a read in us: min 1.00  mean 2.50  p50 2.05  p90 3.94  p99 3.99  p99.9 4.00  max 4.00\n");
}

TEST(Report, ALineForEachBucket) {
  Histogram latencies;
  latencies.Add(5);
  latencies.Add(5);
  latencies.Add(2000);
  std::string text;
  PrintLatencies("it", latencies, /*each=*/true, &text);
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "  <       0.01 us            2  " + std::string(50, '#') + "\n" +
                "  <       2.05 us            1  " + std::string(25, '#') + "\n");
}

TEST(Report, KeysOfJson) {
  nlohmann::ordered_json report;
  AddMessages(Four(), &report);
  AddRate(Four(), 1 << 20, &report);
  AddLatencies("us", Four().latencies, /*each=*/true, &report);
  EXPECT_EQ(report["messages"], 4);
  EXPECT_EQ(report["seconds"], 0.5);
  EXPECT_EQ(report["messages_per_second"], 8);
  EXPECT_EQ(report["mebibytes_per_second"], 8);
  EXPECT_EQ(
      report["us"].dump(),
      R"({"min":1.0,"mean":2.5,"p50":2.047,"p90":3.936,"p99":3.993,"p99_9":3.999,"max":4.0})");
  ASSERT_EQ(report["histogram"].size(), 4u);
  EXPECT_EQ(report["histogram"][1].dump(), R"({"below_us":2.048,"count":1})");
  EXPECT_EQ(Dump({{"host", "\xff"}}), "{\n  \"host\": \"\xef\xbf\xbd\"\n}\n");
}

TEST(Report, ResultsThatBeganTogether) {
  Result sum = Four(), other;
  other.messages = 6;
  other.nanoseconds = 2'000'000'000;
  sum.Add(other);
  EXPECT_EQ(sum.messages, 10u);
  EXPECT_EQ(sum.seconds(), 2);
  EXPECT_EQ(sum.per_second(), 5);
  EXPECT_EQ(sum.latencies.count(), 4u);
}

}  // namespace
}  // namespace viaduct::ping
