#include "verbs/soft/iwarp/fpdu_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/crc32c.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/fpdu_writer.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

using Result = FpduReader::Result;

std::vector<uint8_t> SendFpdu(uint32_t sequence, size_t length) {
  std::vector<uint8_t> payload(length);
  for (size_t i = 0; i < length; ++i) payload[i] = static_cast<uint8_t>(sequence * 31 + i);
  const iovec part{payload.data(), payload.size()};
  FpduFrame frame;
  FrameFpdu(UntaggedHeader(RdmapOpcode::kSend, sequence, 0, true), {}, {&part, 1}, true, &frame);
  std::vector<uint8_t> bytes(frame.head_bytes().begin(), frame.head_bytes().end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.insert(bytes.end(), frame.tail_bytes().begin(), frame.tail_bytes().end());
  return bytes;
}

void Append(std::vector<uint8_t>* to, const std::vector<uint8_t>& bytes) {
  to->insert(to->end(), bytes.begin(), bytes.end());
}

// Takes everything out of `bytes` and returns the segments in hexadecimal.
std::vector<std::string> Drain(FpduReader* reader, std::span<const uint8_t> bytes,
                               Result* last = nullptr) {
  std::vector<std::string> segments;
  std::span<const uint8_t> ulpdu;
  Result result;
  while ((result = reader->Next(&bytes, &ulpdu)) == Result::kFpdu) {
    segments.push_back(ToHex(ulpdu));
  }
  if (last != nullptr) *last = result;
  if (result == Result::kNeedMore) {
    EXPECT_TRUE(bytes.empty());
  }
  return segments;
}

TEST(FpduReaderTest, InPlace) {
  const std::vector<uint8_t> bytes = SendFpdu(1, 8);
  FpduReader reader;
  reader.set_check_crc(true);
  std::span<const uint8_t> input(bytes);
  std::span<const uint8_t> ulpdu;
  ASSERT_EQ(reader.Next(&input, &ulpdu), Result::kFpdu);
  EXPECT_EQ(ulpdu.data(), bytes.data() + 2);
  EXPECT_EQ(ulpdu.size(), 26u);
  EXPECT_TRUE(input.empty());
  EXPECT_TRUE(reader.at_boundary());
  EXPECT_EQ(reader.Next(&input, &ulpdu), Result::kNeedMore);
}

// iWARP checklist 25: three FPDUs cut at every pair of places, and one byte at a time.
TEST(FpduReaderTest, EverySplitPosition) {
  std::vector<uint8_t> bytes = SendFpdu(1, 5);
  Append(&bytes, SendFpdu(2, 0));
  Append(&bytes, SendFpdu(3, 16));
  const std::span<const uint8_t> all(bytes);
  FpduReader whole_reader;
  const std::vector<std::string> whole = Drain(&whole_reader, all);
  ASSERT_EQ(whole.size(), 3u);
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      FpduReader reader;
      reader.set_check_crc(true);
      std::vector<std::string> segments = Drain(&reader, all.first(first));
      for (const auto& piece : {all.subspan(first, second - first), all.subspan(second)}) {
        for (std::string& segment : Drain(&reader, piece)) segments.push_back(std::move(segment));
      }
      ASSERT_EQ(segments, whole) << first << " " << second;
      ASSERT_TRUE(reader.at_boundary());
    }
  }
  FpduReader reader;
  reader.set_check_crc(true);
  std::vector<std::string> segments;
  for (size_t i = 0; i < all.size(); ++i) {
    for (std::string& s : Drain(&reader, all.subspan(i, 1))) segments.push_back(std::move(s));
  }
  EXPECT_EQ(segments, whole);
}

TEST(FpduReaderTest, ThousandInOneRead) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 1; i <= 1000; ++i) Append(&bytes, SendFpdu(i, i % 7));
  FpduReader reader;
  reader.set_check_crc(true);
  EXPECT_EQ(Drain(&reader, bytes).size(), 1000u);
}

// The rest of a cut FPDU is received straight into the reader's buffer.
TEST(FpduReaderTest, FilledDirectly) {
  const std::vector<uint8_t> bytes = SendFpdu(1, 40);
  const std::span<const uint8_t> all(bytes);
  for (size_t cut = 2; cut < bytes.size(); ++cut) {
    FpduReader reader;
    reader.set_check_crc(true);
    EXPECT_TRUE(reader.Missing().empty());
    EXPECT_TRUE(Drain(&reader, all.first(cut)).empty());
    EXPECT_FALSE(reader.at_boundary());
    const std::span<uint8_t> missing = reader.Missing();
    ASSERT_EQ(missing.size(), bytes.size() - cut);
    std::copy(all.begin() + static_cast<long>(cut), all.end(), missing.begin());
    reader.Filled(missing.size());
    EXPECT_TRUE(reader.Missing().empty());
    const std::vector<std::string> segments = Drain(&reader, {});
    ASSERT_EQ(segments.size(), 1u);
    EXPECT_EQ(segments[0], ToHex(all.subspan(2, 58)));
    EXPECT_TRUE(reader.at_boundary());
  }
}

// Checklist 26.
TEST(FpduReaderTest, LengthBelowAnyHeader) {
  for (const uint8_t length : {0, 1, 13}) {
    const std::vector<uint8_t> bytes = {0, length, 0, 0, 0, 0, 0, 0};
    for (const size_t piece : {size_t{1}, bytes.size()}) {
      FpduReader reader;
      Result last = Result::kNeedMore;
      for (size_t at = 0; at < bytes.size() && last == Result::kNeedMore; at += piece) {
        Drain(&reader, std::span<const uint8_t>(bytes).subspan(at, piece), &last);
      }
      EXPECT_EQ(last, Result::kError);
      EXPECT_EQ(reader.error(), kBadFraming);
    }
  }
}

// Checklist 27.
TEST(FpduReaderTest, LongestUlpdu) {
  const std::vector<uint8_t> bytes = SendFpdu(1, kMaxUlpduLength - kDdpUntaggedSize);
  EXPECT_EQ(bytes.size(), kMaxFpduSize);
  const std::span<const uint8_t> all(bytes);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{2}, size_t{40000}, bytes.size() - 1}) {
    FpduReader reader;
    reader.set_check_crc(true);
    EXPECT_TRUE(Drain(&reader, all.first(cut)).empty());
    EXPECT_EQ(Drain(&reader, all.subspan(cut)).size(), 1u);
  }
}

// Checklist 28: no flipped bit gets through, in place or gathered, and nothing follows an error.
TEST(FpduReaderTest, EveryFlippedBitIsNoticed) {
  std::vector<uint8_t> bytes = SendFpdu(1, 5);
  const size_t first_size = bytes.size();
  Append(&bytes, SendFpdu(2, 5));
  // The bits of the length field are left out: flipping one moves the end of the FPDU.
  for (size_t bit = 16; bit < 8 * first_size; ++bit) {
    for (const bool cut : {false, true}) {
      std::vector<uint8_t> bad = bytes;
      bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      const std::span<const uint8_t> all(bad);
      FpduReader reader;
      reader.set_check_crc(true);
      Result last = Result::kNeedMore;
      if (cut) {
        ASSERT_TRUE(Drain(&reader, all.first(9), &last).empty());
        ASSERT_TRUE(Drain(&reader, all.subspan(9), &last).empty());
      } else {
        ASSERT_TRUE(Drain(&reader, all, &last).empty());
      }
      ASSERT_EQ(last, Result::kError);
      ASSERT_EQ(reader.error(), kCrcMismatch);
      ASSERT_TRUE(Drain(&reader, bytes, &last).empty());
      ASSERT_EQ(last, Result::kError);
    }
  }
}

TEST(FpduReaderTest, WithoutCrcTheFieldIsNotLookedAt) {
  std::vector<uint8_t> bytes = SendFpdu(1, 8);
  bytes.back() ^= 0xff;
  FpduReader reader;
  EXPECT_EQ(Drain(&reader, bytes).size(), 1u);
}

// Checklist 24: a pad that is not zero is accepted if the CRC is right.
TEST(FpduReaderTest, NonZeroPad) {
  std::vector<uint8_t> bytes = SendFpdu(1, 5);
  const size_t covered = bytes.size() - kFpduCrcSize;
  bytes[covered - 1] = 0x55;
  const uint32_t crc = ComputeCrc32c(std::span<const uint8_t>(bytes).first(covered));
  for (size_t i = 0; i < 4; ++i) bytes[covered + i] = static_cast<uint8_t>(crc >> 8 * i);
  FpduReader reader;
  reader.set_check_crc(true);
  EXPECT_EQ(Drain(&reader, bytes).size(), 1u);
}

// Checklist 29: the stream may end only between two FPDUs.
TEST(FpduReaderTest, Boundary) {
  const std::vector<uint8_t> bytes = SendFpdu(1, 8);
  FpduReader reader;
  EXPECT_TRUE(reader.at_boundary());
  for (size_t i = 0; i < bytes.size(); ++i) {
    Drain(&reader, std::span<const uint8_t>(bytes).subspan(i, 1));
    EXPECT_EQ(reader.at_boundary(), i + 1 == bytes.size());
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
