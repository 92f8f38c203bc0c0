#include "verbs/soft/iwarp/inbound_sequence.h"

#include "gtest/gtest.h"

namespace viaduct::verbs::iwarp {
namespace {

using Op = RdmapOpcode;

DdpHeader Send(uint32_t sequence, uint32_t offset = 0, bool last = true, Op opcode = Op::kSend) {
  return UntaggedHeader(opcode, sequence, offset, last);
}

TEST(InboundSequenceTest, QueuesCountByThemselves) {
  InboundSequence sequence;
  EXPECT_EQ(sequence.Accept(Send(1), 8), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(1, 0, true, Op::kReadRequest), 28), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(2, 0, true, Op::kSendSolicited), 0), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(3, 0, true, Op::kImmediate), 8), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(2, 0, true, Op::kReadRequest), 28), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(4), 1), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(1, 0, true, Op::kTerminate), 4), std::nullopt);
}

// iWARP checklist 31.
TEST(InboundSequenceTest, Wraps) {
  InboundSequence sequence(0xfffffffe);
  for (const uint32_t number : {0xfffffffeu, 0xffffffffu, 0u, 1u}) {
    EXPECT_EQ(sequence.Accept(Send(number), 1), std::nullopt);
    EXPECT_EQ(sequence.Accept(Send(number, 0, true, Op::kReadRequest), 28), std::nullopt);
  }
}

// Checklist 32.
TEST(InboundSequenceTest, WrongNumberAndOffset) {
  for (const Op opcode : {Op::kSend, Op::kReadRequest, Op::kTerminate}) {
    for (const uint32_t number : {0u, 2u, 5u}) {
      InboundSequence sequence;
      EXPECT_EQ(sequence.Accept(Send(number, 0, true, opcode), 28), kUntaggedBadSequence);
    }
    InboundSequence sequence;
    EXPECT_EQ(sequence.Accept(Send(1, 4, true, opcode), 28), kUntaggedBadOffset);
  }
  InboundSequence sequence;
  EXPECT_EQ(sequence.Accept(Send(1, 0, false), 8), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(1, 4, true), 8), kUntaggedBadOffset);
}

// Checklist 34.
TEST(InboundSequenceTest, MessagesOfSeveralSegments) {
  InboundSequence sequence;
  EXPECT_EQ(sequence.Accept(Send(1, 0, false), 7), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(1, 7, false), 1), std::nullopt);
  EXPECT_EQ(sequence.Accept(TaggedHeader(Op::kReadResponse, 5, 0, true), 3), std::nullopt);
  EXPECT_TRUE(sequence.in_message());
  EXPECT_EQ(sequence.Accept(Send(1, 8, true), 0), std::nullopt);
  EXPECT_FALSE(sequence.in_message());
  EXPECT_EQ(sequence.Accept(Send(2, 0, true), 0), std::nullopt);
}

TEST(InboundSequenceTest, ContinuationOfAnotherKind) {
  InboundSequence sequence;
  EXPECT_EQ(sequence.Accept(Send(1, 0, false), 8), std::nullopt);
  EXPECT_EQ(sequence.Accept(Send(1, 8, true, Op::kSendSolicited), 8), kUnexpectedOpcode);

  InboundSequence other;
  DdpHeader header = Send(1, 0, false, Op::kSendInvalidate);
  header.invalidate = 7;
  EXPECT_EQ(other.Accept(header, 8), std::nullopt);
  header.message_offset = 8;
  header.invalidate = 8;
  EXPECT_EQ(other.Accept(header, 8), kUnexpectedOpcode);
}

TEST(InboundSequenceTest, EmptySegmentsThatGoOn) {
  InboundSequence sequence;
  EXPECT_EQ(sequence.Accept(Send(1, 0, false), 0), kUntaggedBadOffset);
  EXPECT_EQ(sequence.Accept(TaggedHeader(Op::kWrite, 5, 0, false), 0), kTaggedBounds);
  EXPECT_EQ(sequence.Accept(TaggedHeader(Op::kWrite, 5, 0, true), 0), std::nullopt);
}

TEST(InboundSequenceTest, FixedSizes) {
  InboundSequence sequence;
  EXPECT_EQ(sequence.Accept(Send(1, 0, true, Op::kReadRequest), 27), kBadFraming);
  EXPECT_EQ(sequence.Accept(Send(1, 0, true, Op::kReadRequest), 29), kMessageTooLong);
  EXPECT_EQ(sequence.Accept(Send(1, 0, false, Op::kReadRequest), 28), kMessageTooLong);
  EXPECT_EQ(sequence.Accept(Send(1, 0, true, Op::kImmediate), 4), kCatastrophicStream);
  EXPECT_EQ(sequence.Accept(Send(1, 0, false, Op::kImmediate), 8), kCatastrophicStream);
}

TEST(InboundSequenceTest, MessageBeyondFourGigabytes) {
  InboundSequence sequence;
  uint32_t offset = 0;
  while (offset < 0xffff0000u) {
    ASSERT_EQ(sequence.Accept(Send(1, offset, false), 0x10000 - 1), std::nullopt);
    offset += 0x10000 - 1;
  }
  EXPECT_EQ(sequence.Accept(Send(1, offset, false), 0x10000), kMessageTooLong);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
