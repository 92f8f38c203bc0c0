#include "verbs/soft/iwarp/parked_messages.h"

#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = ParkedMessages::Kind;

TEST(ParkedMessagesTest, KeepsOrderAndBytes) {
  ParkedMessages parked;
  std::vector<uint8_t> bytes = FromText("one");
  parked.Push(Kind::kSend, bytes);
  bytes = FromText("tw");
  parked.Push(Kind::kWrite, bytes);
  parked.Push(Kind::kWriteEnd, {});
  EXPECT_EQ(ToHex(parked.front().ulpdu()), ToHex(FromText("one")));
  EXPECT_EQ(parked.count(Kind::kWrite), 1u);
  EXPECT_EQ(parked.count(Kind::kReadRequest), 0u);
  parked.Pop();
  EXPECT_EQ(parked.front().kind, Kind::kWrite);
  parked.TurnFrontIntoWriteEnd();
  EXPECT_EQ(parked.count(Kind::kWrite), 0u);
  EXPECT_EQ(parked.count(Kind::kWriteEnd), 2u);
  EXPECT_TRUE(parked.front().ulpdu().empty());
  parked.Pop();
  parked.Pop();
  EXPECT_TRUE(parked.empty());
}

// Both bytes and messages are bounded, and there is room again when a message leaves.
TEST(ParkedMessagesTest, Full) {
  const std::vector<uint8_t> big(65535);
  for (const size_t size : {size_t{0}, size_t{18}, big.size()}) {
    ParkedMessages parked;
    size_t count = 0;
    for (; !parked.full(); ++count) {
      parked.Push(Kind::kSend, std::span<const uint8_t>(big).first(size));
    }
    EXPECT_LE(count, 5000u);
    EXPECT_GT(count * (size + 64), ParkedMessages::kLimit);
    parked.Pop();
    EXPECT_FALSE(parked.full());
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
