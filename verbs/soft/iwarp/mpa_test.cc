#include "verbs/soft/iwarp/mpa.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

std::string Encode(const MpaFrame& frame) {
  std::array<uint8_t, kMpaMaxFrameSize> out;
  const size_t size = EncodeMpa(frame, out);
  return ToHex(std::span<const uint8_t>(out).first(size));
}

std::string Join(std::string_view hex) { return ToHex(FromHex(hex)); }

constexpr char kRequestKeyHex[] = "4d504120494420526571204672616d65";
constexpr char kReplyKeyHex[] = "4d504120494420526570204672616d65";

std::vector<uint8_t> RequestBytes(std::string_view rest) {
  std::vector<uint8_t> bytes = FromHex(kRequestKeyHex);
  for (const uint8_t byte : FromHex(rest)) bytes.push_back(byte);
  return bytes;
}

std::vector<uint8_t> RequestOfLength(size_t claimed, size_t sent, bool enhanced) {
  std::vector<uint8_t> bytes = RequestBytes(enhanced ? "50020000" : "40010000");
  bytes[18] = static_cast<uint8_t>(claimed >> 8);
  bytes[19] = static_cast<uint8_t>(claimed);
  for (size_t i = 0; i < sent; ++i) bytes.push_back(static_cast<uint8_t>(i * 7 + 1));
  return bytes;
}

using State = MpaParser::State;
using Error = MpaParser::Error;

// iWARP checklist 1: the vectors of the reference, byte for byte.
TEST(MpaEncodeTest, RequestOfRevision1) {
  const std::vector<uint8_t> data = FromHex("cafebabe");
  MpaFrame frame;
  frame.revision = 1;
  frame.crc = true;
  frame.private_data = data;
  EXPECT_EQ(Encode(frame), kRequestKeyHex + Join("40 01 0004 cafebabe"));
}

TEST(MpaEncodeTest, ReplyOfRevision1) {
  MpaFrame frame;
  frame.kind = MpaKind::kReply;
  frame.revision = 1;
  frame.crc = true;
  EXPECT_EQ(Encode(frame), kReplyKeyHex + Join("40 01 0000"));
}

TEST(MpaEncodeTest, EnhancedRequestBetweenClientAndServer) {
  MpaFrame frame;
  frame.crc = true;
  frame.depths = MpaDepths{.ird = 1, .ord = 1};
  EXPECT_EQ(Encode(frame), kRequestKeyHex + Join("50 02 0004 0001 0001"));
}

TEST(MpaEncodeTest, EnhancedRequestBetweenPeers) {
  const std::vector<uint8_t> data = FromText("hi!!");
  MpaFrame frame;
  frame.crc = true;
  frame.depths =
      MpaDepths{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 16, .ord = 8};
  frame.private_data = data;
  EXPECT_EQ(Encode(frame), kRequestKeyHex + Join("50 02 0008 8010 c008 68692121"));
}

TEST(MpaEncodeTest, EnhancedReplyBetweenPeers) {
  MpaFrame frame;
  frame.kind = MpaKind::kReply;
  frame.crc = true;
  frame.depths = MpaDepths{.peer_to_peer = true, .rtr_write = true, .ird = 8, .ord = 16};
  EXPECT_EQ(Encode(frame), kReplyKeyHex + Join("50 02 0004 8008 8010"));
}

// Checklist 2, 13.
TEST(MpaEncodeTest, RejectKeepsTheWord) {
  MpaFrame frame;
  frame.kind = MpaKind::kReply;
  frame.reject = true;
  frame.depths = MpaDepths{};
  EXPECT_EQ(Encode(frame), kReplyKeyHex + Join("30 02 0004 0000 0000"));
}

// The two replies that bring down a siw initiator, and other frames that must not be sent.
TEST(MpaEncodeDeathTest, RefusesWhatMustNeverBeSent) {
  const std::vector<uint8_t> data(513);
  const std::span<const uint8_t> all(data);
  MpaFrame reply;
  reply.kind = MpaKind::kReply;
  reply.depths = MpaDepths{};
  reply.private_data = all.first(252);
  EXPECT_EQ(Encode(reply).size(), 2 * (20 + 256u));
  reply.private_data = all.first(253);
  EXPECT_DEATH(Encode(reply), "");
  reply.depths.reset();
  reply.private_data = all.first(256);
  EXPECT_EQ(Encode(reply).size(), 2 * (20 + 256u));
  reply.private_data = all.first(257);
  EXPECT_DEATH(Encode(reply), "");

  MpaFrame request;
  request.private_data = all.first(512);
  EXPECT_EQ(Encode(request).size(), 2 * (20 + 512u));
  request.private_data = all;
  EXPECT_DEATH(Encode(request), "");
  request.private_data = {};
  request.depths = MpaDepths{.ird = kMpaDepthUnspecified};
  EXPECT_DEATH(Encode(request), "");
  request.depths = MpaDepths{};
  request.revision = 1;
  EXPECT_DEATH(Encode(request), "");
  request.revision = 2;
  request.reject = true;
  EXPECT_DEATH(Encode(request), "");
}

// Checklist 3: revisions 0 to 2, with and without S; 3 and later are refused.
TEST(MpaParseTest, Revisions) {
  for (int revision = 0; revision < 256; ++revision) {
    for (const bool enhanced : {false, true}) {
      std::vector<uint8_t> bytes = RequestOfLength(8, 8, enhanced);
      bytes[17] = static_cast<uint8_t>(revision);
      MpaParser parser(MpaKind::kRequest);
      EXPECT_EQ(parser.Feed(bytes), revision <= 2 ? 28u : 20u);
      if (revision > 2) {
        EXPECT_EQ(parser.error(), Error::kBadRevision);
        continue;
      }
      ASSERT_EQ(parser.state(), State::kComplete);
      EXPECT_EQ(parser.frame().revision, revision);
      const bool word = enhanced && revision == 2;
      EXPECT_EQ(parser.frame().depths.has_value(), word);
      EXPECT_EQ(parser.frame().private_data.size(), word ? 4u : 8u);
    }
  }
}

TEST(MpaParseTest, EveryFlag) {
  for (int flags = 0; flags < 256; ++flags) {
    for (const MpaKind kind : {MpaKind::kRequest, MpaKind::kReply}) {
      std::vector<uint8_t> bytes =
          FromHex(kind == MpaKind::kRequest ? kRequestKeyHex : kReplyKeyHex);
      for (const uint8_t byte : FromHex("00 02 0004 8001 4002")) bytes.push_back(byte);
      bytes[16] = static_cast<uint8_t>(flags);
      MpaParser parser(kind);
      EXPECT_EQ(parser.Feed(bytes), bytes.size());
      ASSERT_EQ(parser.state(), State::kComplete);
      const MpaFrame& frame = parser.frame();
      EXPECT_EQ(frame.markers, (flags & 0x80) != 0);
      EXPECT_EQ(frame.crc, (flags & 0x40) != 0);
      EXPECT_EQ(frame.reject, kind == MpaKind::kReply && (flags & 0x20) != 0);
      ASSERT_EQ(frame.depths.has_value(), (flags & 0x10) != 0);
      if (frame.depths.has_value()) {
        EXPECT_EQ(*frame.depths,
                  (MpaDepths{.peer_to_peer = true, .rtr_read = true, .ird = 1, .ord = 2}));
        EXPECT_TRUE(frame.private_data.empty());
      } else {
        EXPECT_EQ(ToHex(frame.private_data), "80014002");
      }
    }
  }
}

TEST(MpaParseTest, EveryWordRoundTrips) {
  for (int bits = 0; bits < 16; ++bits) {
    for (const uint16_t depth : {0, 1, 128, 0x3ffe}) {
      const MpaDepths depths{.peer_to_peer = (bits & 8) != 0,
                             .rtr_send = (bits & 4) != 0,
                             .rtr_write = (bits & 2) != 0,
                             .rtr_read = (bits & 1) != 0,
                             .ird = depth,
                             .ord = static_cast<uint16_t>(0x3ffe - depth)};
      MpaFrame frame;
      frame.depths = depths;
      MpaParser parser(MpaKind::kRequest);
      parser.Feed(FromHex(Encode(frame)));
      ASSERT_EQ(parser.state(), State::kComplete);
      EXPECT_EQ(parser.frame().depths, depths);
    }
  }
}

// Checklist 4 and 5: a wrong key fails at the first wrong byte; the other role's is told apart.
TEST(MpaParseTest, WrongKeyAtEveryPosition) {
  const std::vector<uint8_t> good = RequestBytes("40 01 0000");
  for (size_t at = 0; at < kMpaKeySize; ++at) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= 0x20;
    for (const size_t piece : {size_t{1}, size_t{3}, bytes.size()}) {
      MpaParser parser(MpaKind::kRequest);
      size_t fed = 0;
      while (fed < bytes.size() && parser.state() == State::kIncomplete) {
        const size_t step = std::min(piece, bytes.size() - fed);
        parser.Feed(std::span<const uint8_t>(bytes).subspan(fed, step));
        fed += step;
      }
      EXPECT_EQ(parser.state(), State::kFailed);
      EXPECT_EQ(parser.error(), Error::kBadKey);
      EXPECT_EQ(parser.Feed(bytes), 0u);
      if (piece == 1) {
        EXPECT_EQ(fed, at + 1);
      }
    }
  }
}

TEST(MpaParseTest, BothInitiators) {
  MpaParser parser(MpaKind::kReply);
  parser.Feed(RequestBytes("40 01 0000"));
  EXPECT_EQ(parser.error(), Error::kWrongRole);
}

// Checklist 6: every split position, one byte at a time, and nothing taken beyond the frame.
TEST(MpaParseTest, EverySplitPosition) {
  std::vector<uint8_t> bytes = RequestBytes("50 02 0008 8010 c008 68692121");
  const size_t size = bytes.size();
  for (const uint8_t byte : FromHex("000ec140")) bytes.push_back(byte);
  const std::span<const uint8_t> all(bytes);
  for (size_t cut = 0; cut <= size; ++cut) {
    MpaParser parser(MpaKind::kRequest);
    EXPECT_EQ(parser.Feed(all.first(cut)), cut);
    EXPECT_EQ(parser.Feed(all.subspan(cut)), size - cut);
    ASSERT_EQ(parser.state(), State::kComplete) << cut;
    EXPECT_EQ(ToHex(parser.frame().private_data), "68692121");
    EXPECT_EQ(*parser.frame().depths,
              (MpaDepths{
                  .peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 16, .ord = 8}));
    EXPECT_EQ(parser.Feed(all.subspan(size)), 0u);
  }
  MpaParser parser(MpaKind::kRequest);
  for (size_t i = 0; i < size; ++i) {
    ASSERT_EQ(parser.state(), State::kIncomplete);
    ASSERT_EQ(parser.Feed(all.subspan(i, 1)), 1u);
  }
  EXPECT_EQ(parser.state(), State::kComplete);
}

// Checklist 7.
TEST(MpaParseTest, PrivateDataLengths) {
  for (const size_t length : {0, 1, 4, 251, 252, 256, 508, 512}) {
    const std::vector<uint8_t> bytes = RequestOfLength(length, length, false);
    MpaParser parser(MpaKind::kRequest);
    EXPECT_EQ(parser.Feed(bytes), bytes.size());
    ASSERT_EQ(parser.state(), State::kComplete) << length;
    EXPECT_EQ(ToHex(parser.frame().private_data),
              ToHex(std::span<const uint8_t>(bytes).subspan(20)));
  }
  for (const size_t length : {513, 65535}) {
    MpaParser parser(MpaKind::kRequest);
    EXPECT_EQ(parser.Feed(RequestOfLength(length, 600, false)), 20u);
    EXPECT_EQ(parser.error(), Error::kTooLong) << length;
  }
}

// Receiving only what is missing never takes a byte beyond the frame.
TEST(MpaParseTest, Missing) {
  std::vector<uint8_t> bytes = RequestBytes("50 02 0008 8010 c008 68692121");
  const size_t size = bytes.size();
  bytes.resize(size + 100);
  MpaParser parser(MpaKind::kRequest);
  size_t fed = 0;
  while (parser.missing() > 0) {
    fed += parser.Feed(std::span<const uint8_t>(bytes).subspan(fed, parser.missing()));
  }
  EXPECT_EQ(fed, size);
  EXPECT_EQ(parser.state(), State::kComplete);
}

TEST(MpaParseTest, MissingPrivateDataStaysIncomplete) {
  for (size_t sent = 0; sent < 8; ++sent) {
    MpaParser parser(MpaKind::kRequest);
    parser.Feed(RequestOfLength(8, sent, true));
    EXPECT_EQ(parser.state(), State::kIncomplete);
  }
}

// Checklist 8.
TEST(MpaParseTest, EnhancedWithoutItsWord) {
  for (size_t length = 0; length < 4; ++length) {
    MpaParser parser(MpaKind::kRequest);
    EXPECT_EQ(parser.Feed(RequestOfLength(length, length, true)), 20u);
    EXPECT_EQ(parser.error(), Error::kNoDepths);
    EXPECT_EQ(parser.frame().revision, 2);
    EXPECT_TRUE(parser.frame().crc);
    EXPECT_FALSE(parser.frame().depths.has_value());
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
