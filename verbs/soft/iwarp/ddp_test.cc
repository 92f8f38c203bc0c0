#include "verbs/soft/iwarp/ddp.h"

#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

std::string Encode(const DdpHeader& header) {
  std::array<uint8_t, kDdpUntaggedSize> out;
  const size_t size = EncodeDdpHeader(header, out);
  return ToHex(std::span<const uint8_t>(out).first(size));
}

std::string Join(std::string_view hex) { return ToHex(FromHex(hex)); }

std::optional<WireError> Parse(std::string_view hex, DdpHeader* header) {
  return ParseDdpHeader(FromHex(hex), header);
}

std::optional<WireError> ErrorOf(std::string_view hex) {
  DdpHeader header;
  return Parse(hex, &header);
}

TEST(DdpHeaderTest, ControlBytesOfEveryOpcode) {
  struct Row {
    RdmapOpcode opcode;
    const char* control;
    uint32_t queue;
  };
  for (const Row& row :
       {Row{RdmapOpcode::kReadRequest, "4141", 1}, Row{RdmapOpcode::kSend, "4143", 0},
        Row{RdmapOpcode::kSendInvalidate, "4144", 0}, Row{RdmapOpcode::kSendSolicited, "4145", 0},
        Row{RdmapOpcode::kSendSolicitedInvalidate, "4146", 0},
        Row{RdmapOpcode::kTerminate, "4147", 2}, Row{RdmapOpcode::kImmediate, "4148", 0},
        Row{RdmapOpcode::kImmediateSolicited, "4149", 0},
        Row{RdmapOpcode::kAtomicRequest, "414a", 1},
        Row{RdmapOpcode::kAtomicResponse, "414b", 3}}) {
    const std::string bytes = Encode(UntaggedHeader(row.opcode, 1, 0, true));
    EXPECT_EQ(bytes.substr(0, 4), row.control);
    EXPECT_EQ(bytes.size(), 2 * kDdpUntaggedSize);
    DdpHeader header;
    ASSERT_EQ(Parse(bytes, &header), std::nullopt) << row.control;
    EXPECT_EQ(header, UntaggedHeader(row.opcode, 1, 0, true));
    EXPECT_EQ(header.queue, row.queue);
  }
  EXPECT_EQ(Encode(TaggedHeader(RdmapOpcode::kWrite, 0, 0, true)).substr(0, 4), "c140");
  EXPECT_EQ(Encode(TaggedHeader(RdmapOpcode::kReadResponse, 0, 0, true)).substr(0, 4), "c142");
}

TEST(DdpHeaderTest, Tagged) {
  const DdpHeader header = TaggedHeader(RdmapOpcode::kWrite, 0x00012a00, 0x7f0000001000, false);
  EXPECT_EQ(Encode(header), Join("81 40 00012a00 00007f0000001000"));
  DdpHeader parsed;
  ASSERT_EQ(Parse("81 40 00012a00 00007f0000001000 ff", &parsed), std::nullopt);
  EXPECT_EQ(parsed, header);
}

TEST(DdpHeaderTest, UntaggedInSeveralSegments) {
  const DdpHeader header = UntaggedHeader(RdmapOpcode::kSend, 0xffffffff, 0x01020304, false);
  EXPECT_EQ(Encode(header), Join("01 43 00000000 00000000 ffffffff 01020304"));
  DdpHeader parsed;
  ASSERT_EQ(Parse(Encode(header), &parsed), std::nullopt);
  EXPECT_EQ(parsed, header);
}

TEST(DdpHeaderTest, InvalidateStag) {
  DdpHeader header = UntaggedHeader(RdmapOpcode::kSendInvalidate, 3, 0, true);
  header.invalidate = 0x00012a00;
  EXPECT_EQ(Encode(header), Join("41 44 00012a00 00000000 00000003 00000000"));
  DdpHeader parsed;
  ASSERT_EQ(Parse(Encode(header), &parsed), std::nullopt);
  EXPECT_EQ(parsed.invalidate, 0x00012a00u);
  // In other opcodes the field is ignored, and so are the reserved bits of both control bytes.
  ASSERT_EQ(Parse("7d 73 00012a00 00000000 00000003 00000000", &parsed), std::nullopt);
  EXPECT_EQ(parsed, UntaggedHeader(RdmapOpcode::kSend, 3, 0, true));
}

// iWARP checklist 26.
TEST(DdpHeaderTest, ShortHeaders) {
  const std::vector<uint8_t> tagged = FromHex("c140 00012a00 00007f0000001000");
  const std::vector<uint8_t> untagged = FromHex("4143 00000000 00000000 00000001 00000000");
  DdpHeader header;
  for (const std::vector<uint8_t>* bytes : {&tagged, &untagged}) {
    for (size_t size = 0; size < bytes->size(); ++size) {
      // A copy of that size, so that a sanitizer notices a read beyond it.
      const std::vector<uint8_t> cut(bytes->begin(), bytes->begin() + static_cast<long>(size));
      EXPECT_EQ(ParseDdpHeader(cut, &header), kBadFraming) << size;
      EXPECT_TRUE(HeaderBytes(cut).empty());
    }
    EXPECT_EQ(ParseDdpHeader(*bytes, &header), std::nullopt);
    EXPECT_EQ(HeaderBytes(*bytes).size(), bytes->size());
  }
}

// Checklist 32, 49.
TEST(DdpHeaderTest, Versions) {
  for (const char* control : {"c0", "c2", "c3"}) {
    EXPECT_EQ(ErrorOf(std::string(control) + "40 00012a00 00007f0000001000"), kTaggedBadVersion);
  }
  for (const char* control : {"40", "42", "43"}) {
    EXPECT_EQ(ErrorOf(std::string(control) + "43 00000000 00000000 00000001 00000000"),
              kUntaggedBadVersion);
  }
  for (const char* control : {"03", "83", "c3"}) {
    EXPECT_EQ(ErrorOf("41" + std::string(control) + "00000000 00000000 00000001 00000000"),
              kRdmapBadVersion);
  }
}

TEST(DdpHeaderTest, WrongQueue) {
  EXPECT_EQ(ErrorOf("4143 00000000 00000001 00000001 00000000"), kUntaggedBadQueue);
  EXPECT_EQ(ErrorOf("4141 00000000 00000000 00000001 00000000"), kUntaggedBadQueue);
  EXPECT_EQ(ErrorOf("4147 00000000 00000003 00000001 00000000"), kUntaggedBadQueue);
  EXPECT_EQ(ErrorOf("4143 00000000 80000000 00000001 00000000"), kUntaggedBadQueue);
}

// Checklist 33: every opcode with the T bit of the other kind.
TEST(DdpHeaderTest, TaggedBitAgainstOpcode) {
  constexpr char kDigits[] = "0123456789ab";  // including those of RFC 7306
  for (int opcode = 0; opcode < 12; ++opcode) {
    const std::string low = std::string("4") + kDigits[opcode];
    const bool tagged = IsTagged(static_cast<RdmapOpcode>(opcode));
    const std::string header = (tagged ? "41" : "c1") + low + "00000000 00000000 00000001 00000000";
    EXPECT_EQ(ErrorOf(header), kUnexpectedOpcode) << opcode;
  }
}

TEST(DdpHeaderTest, UnknownOpcodes) {
  for (const char* opcode : {"4c", "4d", "4e", "4f"}) {
    EXPECT_EQ(ErrorOf("41" + std::string(opcode) + "00000000 00000000 00000001 00000000"),
              kUnexpectedOpcode);
  }
}

TEST(DdpHeaderTest, Solicited) {
  EXPECT_TRUE(IsSolicited(RdmapOpcode::kSendSolicited));
  EXPECT_TRUE(IsSolicited(RdmapOpcode::kSendSolicitedInvalidate));
  EXPECT_TRUE(IsSolicited(RdmapOpcode::kImmediateSolicited));
  EXPECT_FALSE(IsSolicited(RdmapOpcode::kSend));
  EXPECT_FALSE(IsSolicited(RdmapOpcode::kWrite));
}

TEST(ReadRequestTest, RoundTrip) {
  const ReadRequest request{.sink_stag = 0x00033b00,
                            .sink_offset = 0x2000,
                            .size = 16,
                            .source_stag = 0x00012a00,
                            .source_offset = 0x7f0000001000};
  std::array<uint8_t, kReadRequestSize> bytes;
  EncodeReadRequest(request, bytes);
  EXPECT_EQ(ToHex(bytes), Join("00033b00 0000000000002000 00000010 00012a00 00007f0000001000"));
  EXPECT_EQ(DecodeReadRequest(bytes), request);
}

TEST(AtomicRequestTest, RoundTrip) {
  const AtomicRequest request{.operation = kAtomicFetchAdd,
                              .id = 0x77,
                              .stag = 0x00012a00,
                              .address = 0x7f0000001000,
                              .data = 5};
  std::array<uint8_t, kAtomicRequestSize> bytes;
  EncodeAtomicRequest(request, bytes);
  EXPECT_EQ(ToHex(bytes), Join("00000000 00000077 00012a00 00007f0000001000 0000000000000005 "
                               "0000000000000000 0000000000000000 ffffffffffffffff"));
  EXPECT_EQ(DecodeAtomicRequest(bytes), request);
}

TEST(AtomicRequestTest, Apply) {
  AtomicRequest add{.operation = kAtomicFetchAdd, .data = 5};
  EXPECT_EQ(ApplyAtomic(add, 41), 46u);
  EXPECT_EQ(ApplyAtomic(add, ~uint64_t{0}), 4u);
  add.data = 0x80ff;
  add.data_mask = 0x8080;  // two fields of one byte each
  EXPECT_EQ(ApplyAtomic(add, 0x8001), 0x0000u);
  AtomicRequest swap{
      .operation = kAtomicCompareSwap, .data = 9, .data_mask = ~uint64_t{0}, .compare = 41};
  EXPECT_EQ(ApplyAtomic(swap, 41), 9u);
  EXPECT_EQ(ApplyAtomic(swap, 42), 42u);
  swap.compare_mask = 0xff;
  swap.data_mask = 0xf;
  swap.data = 3;
  EXPECT_EQ(ApplyAtomic(swap, 0x1129), 0x1123u);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
