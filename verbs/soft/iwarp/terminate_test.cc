#include "verbs/soft/iwarp/terminate.h"

#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

std::string Encode(const WireError& error, std::string_view ulpdu) {
  const std::vector<uint8_t> bytes = FromHex(ulpdu);
  std::array<uint8_t, kMaxTerminateSize> out;
  const size_t size = EncodeTerminate(error, bytes, out);
  return ToHex(std::span<const uint8_t>(out).first(size));
}

std::string Join(std::string_view hex) { return ToHex(FromHex(hex)); }

constexpr char kWrite[] = "c140deadbe000000000000001000 68656c6c6f";
constexpr char kRead[] =
    "4141 00000000 00000001 00000003 00000000"
    "00033b00 0000000000002000 00000010 deadbe00 0000000000001000";

// iWARP checklist 50; the FPDUs around these payloads are in fpdu_writer_test.
TEST(TerminateEncodeTest, ErrorOfAWriteShowsItsHeader) {
  EXPECT_EQ(Encode(kTaggedInvalidStag, kWrite),
            Join("1100 c000 0013 c140deadbe000000000000001000"));
}

TEST(TerminateEncodeTest, ErrorOfAReadShowsTheRequest) {
  EXPECT_EQ(Encode(kReadInvalidStag, kRead), Join("0100 e000 002e") + Join(kRead));
}

TEST(TerminateEncodeTest, OperationErrorShowsTheHeaderOnly) {
  EXPECT_EQ(Encode(kCatastrophicStream, kRead),
            Join("0207 c000 002e 4141 00000000 00000001 00000003 00000000"));
}

TEST(TerminateEncodeTest, ErrorsOfMpaShowNothing) {
  EXPECT_EQ(Encode(kCrcMismatch, kWrite), "20020000");
  EXPECT_EQ(Encode(kRdmapLocalCatastrophic, kWrite), "00000000");
}

TEST(TerminateEncodeTest, NoSegmentOrHalfAHeader) {
  EXPECT_EQ(Encode(kNoBuffer, ""), "12020000");
  EXPECT_EQ(Encode(kNoBuffer, "c140deadbe"), "12020000");
}

TEST(TerminateEncodeTest, HalfAReadRequest) {
  const std::string header = Join(kRead).substr(0, 2 * kDdpUntaggedSize);
  EXPECT_EQ(Encode(kReadBounds, header), Join("0101 c000 0012") + header);
}

Terminate Decode(std::string_view hex, bool started = true) {
  const std::optional<Terminate> terminate = DecodeTerminate(FromHex(hex), started);
  EXPECT_TRUE(terminate.has_value());
  return terminate.value_or(Terminate());
}

TEST(TerminateDecodeTest, OwnEncoding) {
  const Terminate write = Decode("1100 c000 0013 c140deadbe000000000000001000");
  EXPECT_EQ(write.error, kTaggedInvalidStag);
  ASSERT_TRUE(write.segment.has_value());
  EXPECT_EQ(write.segment->stag, 0xdeadbe00u);

  const Terminate read = Decode(Encode(kReadInvalidStag, kRead));
  EXPECT_EQ(read.error, kReadInvalidStag);
  ASSERT_TRUE(read.segment.has_value());
  EXPECT_EQ(read.segment->opcode, RdmapOpcode::kReadRequest);
}

struct Row {
  const char* bytes;
  WireError error;
  bool started = true;
};

// Checklist 51: what was seen from siw, with the fourth control byte added.
TEST(TerminateDecodeTest, OrderOfSiw) {
  const Row rows[] = {
      {"11000300", kTaggedInvalidStag},
      {"21020300", kNoBuffer},
      {"21030300", kUntaggedBadSequence},
      {"21010300", kUntaggedBadQueue},
      {"21060000", kUntaggedBadVersion},
      {"02020000", kCrcMismatch},
      {"02030000", kBadFraming},
      {"02040000", kBadStartup, false},
      {"02060000", kInsufficientIrd, false},
      {"20060000", kUnexpectedOpcode},
      {"20070300", kCatastrophicStream},
      {"20090300", {0, 2, 9}},
      {"10000700", kReadInvalidStag},
      {"01000300", {1, 0, 0}},
  };
  for (const Row& row : rows) {
    const Terminate terminate = Decode(row.bytes, row.started);
    EXPECT_EQ(terminate.error, row.error) << row.bytes << " " << Describe(terminate.error);
  }
}

TEST(TerminateDecodeTest, OrderOfTheRfc) {
  const Row rows[] = {
      {"12028000", kNoBuffer},
      {"1202c000", kNoBuffer},
      {"12060000", kUntaggedBadVersion},
      {"20020000", kCrcMismatch},
      {"20030000", kBadFraming},
      {"20060000", kInsufficientIrd, false},
      {"20070000", kNoMatchingRtr, false},
      {"02060000", kUnexpectedOpcode},
      {"02080000", {0, 2, 8}},
      {"0209c000", {0, 2, 9}},
      {"0102e000", kReadAccess},
      {"01020000", kReadAccess},
      {"01000000", kReadInvalidStag},  // cxgb4: for a write to an unknown STag, too
      {"00000000", kRdmapLocalCatastrophic},
      {"11010000", kTaggedBounds},
      {"10000000", {1, 0, 0}},
  };
  for (const Row& row : rows) {
    const Terminate terminate = Decode(row.bytes, row.started);
    EXPECT_EQ(terminate.error, row.error) << row.bytes << " " << Describe(terminate.error);
  }
}

// siw: wrong segment length, and a Read Request whose sequence number is the read's length.
TEST(TerminateDecodeTest, SiwReadError) {
  const Terminate terminate = Decode(
      "10000700 0000 4141 00000000 00000001 00000040 00000000"
      "00033b00 0000000000002000 00000040 deadbe00 0000000000001000");
  EXPECT_EQ(terminate.error, kReadInvalidStag);
  ASSERT_TRUE(terminate.segment.has_value());
  EXPECT_EQ(terminate.segment->opcode, RdmapOpcode::kReadRequest);
}

TEST(TerminateDecodeTest, EveryTruncationIsHarmless) {
  const std::vector<uint8_t> whole = FromHex(Encode(kReadInvalidStag, kRead));
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<long>(size));
    const std::optional<Terminate> terminate = DecodeTerminate(cut, true);
    ASSERT_EQ(terminate.has_value(), size >= kTerminateControlSize);
    if (!terminate.has_value()) continue;
    EXPECT_EQ(terminate->error, kReadInvalidStag);
    EXPECT_EQ(terminate->segment.has_value(), size >= 6 + kDdpUntaggedSize);
  }
}

TEST(WireErrorTest, Describe) {
  EXPECT_EQ(Describe(kNoBuffer), "DDP untagged buffer: no buffer (1/2/2)");
  EXPECT_EQ(Describe({7, 1, 200}), "unknown error (7/1/200)");
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
