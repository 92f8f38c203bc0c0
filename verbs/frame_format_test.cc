#include "verbs/frame_format.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

using Bytes = std::array<uint8_t, kFrameBytes>;

Bytes Encoded(const Frame& frame) {
  Bytes bytes;
  EncodeFrame(frame, bytes);
  return bytes;
}

TEST(Frame, LooksAsFormatMdSays) {
  EXPECT_THAT(Encoded({FrameKind::kSend}),
              testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Encoded({FrameKind::kSendWithImmediate, 0x01020304}),
              testing::ElementsAre(0, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 0));
  EXPECT_THAT(Encoded({FrameKind::kWrite, 0x01020304, 0xfffefdfc}),
              testing::ElementsAre(0, 0, 0, 2, 1, 2, 3, 4, 0xff, 0xfe, 0xfd, 0xfc));
}

TEST(Frame, IsReadAsItWasWritten) {
  for (const Frame& frame :
       {Frame{}, Frame{FrameKind::kSendWithImmediate, 0},
        Frame{FrameKind::kSendWithImmediate, 0xffffffff}, Frame{FrameKind::kWrite, 7, 0},
        Frame{FrameKind::kWrite, 0, 1u << 31}}) {
    const std::optional<Frame> read = ParseFrame(Encoded(frame), 0);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->kind, frame.kind);
    EXPECT_EQ(read->immediate, frame.immediate);
    EXPECT_EQ(read->length, frame.length);
    EXPECT_EQ(read->has_immediate(), frame.kind != FrameKind::kSend);
  }
}

TEST(Frame, OnlyAWritesEndsItsMessage) {
  EXPECT_TRUE(ParseFrame(Encoded({FrameKind::kSend}), 1));
  EXPECT_TRUE(ParseFrame(Encoded({FrameKind::kSendWithImmediate}), 1));
  EXPECT_FALSE(ParseFrame(Encoded({FrameKind::kWrite}), 1));
}

TEST(Frame, WhatNobodyWritesIsRefused) {
  EXPECT_FALSE(ParseFrame(Encoded({FrameKind::kSend, 1, 0}), 0));
  EXPECT_FALSE(ParseFrame(Encoded({FrameKind::kSend, 0, 1}), 0));
  EXPECT_FALSE(ParseFrame(Encoded({FrameKind::kSendWithImmediate, 0, 1}), 0));
  for (uint32_t kind : {3u, 4u, 0x100u, 0x01000000u, 0xffffffffu}) {
    EXPECT_FALSE(ParseFrame(Encoded({static_cast<FrameKind>(kind)}), 0)) << kind;
  }
}

}  // namespace
}  // namespace viaduct::verbs
