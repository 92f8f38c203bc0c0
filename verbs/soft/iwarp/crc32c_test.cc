#include "verbs/soft/iwarp/crc32c.h"

#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

TEST(Crc32cTest, CheckValue) {
  EXPECT_EQ(ComputeCrc32c(FromText("123456789")), 0xE3069283u);
  EXPECT_EQ(ComputeCrc32c({}), 0u);
}

// RFC 5044 figures 5 and 6: an FPDU after a marker of zero, and one with a marker inside. The
// figures show the bytes in wire order, least significant first.
TEST(Crc32cTest, FiguresOfRfc5044) {
  EXPECT_EQ(ComputeCrc32c(FromHex("00000000 002a 4143 00000000 00000000 00000001 00000000"
                                  "000000000000000000000000000000000000000000000000")),
            0x83992352u);
  EXPECT_EQ(ComputeCrc32c(FromHex("002a 4143 00000000 00000000 00000002 00000000 00000014"
                                  "000000000000000000000000000000000000000000000000")),
            0x98589284u);
}

TEST(Crc32cTest, EveryPartitionGivesTheSameValue) {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  const uint32_t whole = ComputeCrc32c(bytes);
  const std::span<const uint8_t> all(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Crc32c crc;
    crc.Append(all.first(cut));
    crc.Append(all.subspan(cut));
    ASSERT_EQ(crc.value(), whole) << cut;
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
