#include "verbs/soft/iwarp/fpdu_writer.h"

#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/crc32c.h"
#include "verbs/soft/iwarp/terminate.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

std::string Join(std::string_view hex) { return ToHex(FromHex(hex)); }

std::string Frame(const DdpHeader& header, std::span<const uint8_t> fixed,
                  std::span<const uint8_t> payload, bool crc = true) {
  std::vector<uint8_t> copy(payload.begin(), payload.end());
  const iovec part{copy.data(), copy.size()};
  FpduFrame frame;
  FrameFpdu(header, fixed, {&part, 1}, crc, &frame);
  return ToHex(frame.head_bytes()) + ToHex(copy) + ToHex(frame.tail_bytes());
}

std::string FrameText(const DdpHeader& header, std::string_view payload) {
  return Frame(header, {}, FromText(payload));
}

std::string FrameRead(uint32_t sequence, const ReadRequest& request) {
  std::array<uint8_t, kReadRequestSize> fixed;
  EncodeReadRequest(request, fixed);
  return Frame(UntaggedHeader(RdmapOpcode::kReadRequest, sequence, 0, true), fixed, {});
}

std::string FrameTerminate(const WireError& error, std::string_view ulpdu) {
  std::array<uint8_t, kMaxTerminateSize> fixed;
  const size_t size = EncodeTerminate(error, FromHex(ulpdu), fixed);
  return Frame(UntaggedHeader(RdmapOpcode::kTerminate, 1, 0, true),
               std::span<const uint8_t>(fixed).first(size), {});
}

// iWARP checklist 23, 50: section 7 of the reference, byte for byte.
TEST(FpduVectorTest, Sends) {
  EXPECT_EQ(FrameText(UntaggedHeader(RdmapOpcode::kSend, 1, 0, true), "ABCDEFGH"),
            Join("001a 41 43 00000000 00000000 00000001 00000000 4142434445464748 334d7288"));
  EXPECT_EQ(FrameText(UntaggedHeader(RdmapOpcode::kSend, 2, 0, true), "hello"),
            Join("0017 41 43 00000000 00000000 00000002 00000000 68656c6c6f 000000 16d8c75d"));
  DdpHeader invalidate = UntaggedHeader(RdmapOpcode::kSendInvalidate, 3, 0, true);
  invalidate.invalidate = 0x00012a00;
  EXPECT_EQ(FrameText(invalidate, ""),
            Join("0012 41 44 00012a00 00000000 00000003 00000000 9925abee"));
  EXPECT_EQ(FrameText(UntaggedHeader(RdmapOpcode::kSendSolicited, 4, 0, true), ""),
            Join("0012 41 45 00000000 00000000 00000004 00000000 77150ad9"));
}

TEST(FpduVectorTest, Writes) {
  EXPECT_EQ(FrameText(TaggedHeader(RdmapOpcode::kWrite, 0x12a00, 0x7f0000001000, true),
                      "RDMA Write data!"),
            Join("001e c1 40 00012a00 00007f0000001000 52444d41205772697465206461746121 26253795"));
  EXPECT_EQ(
      FrameText(TaggedHeader(RdmapOpcode::kWrite, 0x12a00, 0x7f0000001000, false), "ABCDEFGHIJKL"),
      Join("001a 81 40 00012a00 00007f0000001000 4142434445464748494a4b4c 08d37114"));
  EXPECT_EQ(FrameText(TaggedHeader(RdmapOpcode::kWrite, 0x12a00, 0x7f000000100c, true), "MNO"),
            Join("0011 c1 40 00012a00 00007f000000100c 4d4e4f 00 181f9e04"));
  EXPECT_EQ(FrameText(TaggedHeader(RdmapOpcode::kWrite, kNoMemoryStag, 0, true), ""),
            Join("000e c1 40 00000001 0000000000000000 ebd34c5f"));
}

TEST(FpduVectorTest, Reads) {
  EXPECT_EQ(FrameRead(1, {0x00033b00, 0x2000, 16, 0x00012a00, 0x7f0000001000}),
            Join("002e 41 41 00000000 00000001 00000001 00000000 00033b00 0000000000002000"
                 "00000010 00012a00 00007f0000001000 492b8992"));
  EXPECT_EQ(FrameText(TaggedHeader(RdmapOpcode::kReadResponse, 0x33b00, 0x2000, true),
                      "0123456789abcdef"),
            Join("001e c1 42 00033b00 0000000000002000 30313233343536373839616263646566 b3725bf4"));
  EXPECT_EQ(FrameRead(2, {kNoMemoryStag, 0, 0, kNoMemoryStag, 0}),
            Join("002e 41 41 00000000 00000001 00000002 00000000 00000001 0000000000000000"
                 "00000000 00000001 0000000000000000 56a69c09"));
}

TEST(FpduVectorTest, ImmediateData) {
  EXPECT_EQ(
      Frame(UntaggedHeader(RdmapOpcode::kImmediate, 5, 0, true), FromHex("0123456789abcdef"), {}),
      Join("001a 41 48 00000000 00000000 00000005 00000000 0123456789abcdef 33339baf"));
}

TEST(FpduVectorTest, Terminates) {
  EXPECT_EQ(FrameTerminate(kTaggedInvalidStag, "c140deadbe00000000000000100068656c6c6f"),
            Join("0026 41 47 00000000 00000002 00000001 00000000 1100 c000 0013"
                 "c140deadbe000000000000001000 051be7a9"));
  EXPECT_EQ(FrameTerminate(kReadInvalidStag,
                           "4141 00000000 00000001 00000003 00000000 00033b00 0000000000002000"
                           "00000010 deadbe00 0000000000001000"),
            Join("0046 41 47 00000000 00000002 00000001 00000000 0100 e000 002e"
                 "4141000000000000000100000003 00000000 00033b00 0000000000002000 00000010"
                 "deadbe00 0000000000001000 ff41d97d"));
  EXPECT_EQ(FrameTerminate(kCrcMismatch, ""),
            Join("0016 41 47 00000000 00000002 00000001 00000000 2002 0000 7fe42585"));
}

// Checklist 24: pads of 0..3 zeros, which the CRC covers.
TEST(FpduWriterTest, Pads) {
  for (size_t length = 0; length < 8; ++length) {
    const std::string text(length, 'x');
    const std::vector<uint8_t> bytes =
        FromHex(FrameText(UntaggedHeader(RdmapOpcode::kSend, 1, 0, true), text));
    ASSERT_EQ(bytes.size(), FpduSize(kDdpUntaggedSize + length));
    EXPECT_EQ(bytes.size() % 4, 0u);
    const size_t data = kFpduLengthSize + kDdpUntaggedSize + length;
    const size_t pad = bytes.size() - kFpduCrcSize - data;
    EXPECT_EQ(pad, (4 - length % 4) % 4);
    for (size_t i = 0; i < pad; ++i) EXPECT_EQ(bytes[data + i], 0);
    const std::span<const uint8_t> all(bytes);
    const uint32_t crc = ComputeCrc32c(all.first(data + pad));
    EXPECT_EQ(ToHex(all.last(4)),
              ToHex(std::vector<uint8_t>{static_cast<uint8_t>(crc), static_cast<uint8_t>(crc >> 8),
                                         static_cast<uint8_t>(crc >> 16),
                                         static_cast<uint8_t>(crc >> 24)}));
  }
}

TEST(FpduWriterTest, ScatteredPayloadGivesTheSameCrc) {
  std::string text = "scattered payload of a send";
  const DdpHeader header = UntaggedHeader(RdmapOpcode::kSend, 9, 0, true);
  const std::string whole = FrameText(header, text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const iovec parts[] = {{text.data(), cut}, {text.data() + cut, text.size() - cut}};
    FpduFrame frame;
    FrameFpdu(header, {}, parts, true, &frame);
    EXPECT_EQ(ToHex(frame.head_bytes()) + ToHex(FromText(text)) + ToHex(frame.tail_bytes()), whole);
  }
}

TEST(FpduWriterTest, WithoutCrcTheFieldIsZero) {
  EXPECT_EQ(Frame(UntaggedHeader(RdmapOpcode::kSend, 1, 0, true), {}, FromText("ABCDEFGH"), false),
            Join("001a 41 43 00000000 00000000 00000001 00000000 4142434445464748 00000000"));
}

TEST(FpduWriterDeathTest, RefusesALongerUlpdu) {
  std::vector<uint8_t> bytes(kMaxUlpduLength - kDdpUntaggedSize + 1);
  const DdpHeader header = UntaggedHeader(RdmapOpcode::kSend, 1, 0, true);
  FpduFrame frame;
  const iovec most{bytes.data(), bytes.size() - 1};
  FrameFpdu(header, {}, {&most, 1}, true, &frame);
  EXPECT_EQ(ToHex(frame.head_bytes()).substr(0, 4), "ffff");
  const iovec more{bytes.data(), bytes.size()};
  EXPECT_DEATH(FrameFpdu(header, {}, {&more, 1}, true, &frame), "");
}

// Checklist 30: sizes for the MSS of Ethernet with timestamps and without, and of loopback.
TEST(FpduWriterTest, Limits) {
  EXPECT_EQ(UlpduLimit(1448), 1442u);
  EXPECT_EQ(PayloadLimit(1442, true), 1428u);
  EXPECT_EQ(PayloadLimit(1442, false), 1424u);
  EXPECT_EQ(UlpduLimit(1460), 1454u);
  EXPECT_EQ(UlpduLimit(0), 128u);
  EXPECT_EQ(UlpduLimit(128), 128u);
  EXPECT_EQ(UlpduLimit(65483), 65474u);
  EXPECT_EQ(UlpduLimit(1 << 20), 65524u);
  for (size_t mss = 134; mss < 70000; ++mss) {
    const size_t limit = UlpduLimit(mss);
    ASSERT_LE(limit, 65524u);
    if (limit > 128) {
      ASSERT_LE(FpduSize(limit), mss);
    }
    ASSERT_EQ(FpduPad(kDdpTaggedSize + PayloadLimit(limit, true)), 0u);
    ASSERT_EQ(FpduPad(kDdpUntaggedSize + PayloadLimit(limit, false)), 0u);
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
