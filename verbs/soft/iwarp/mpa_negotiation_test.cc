#include "verbs/soft/iwarp/mpa_negotiation.h"

#include "gtest/gtest.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = MpaOutcome::Kind;

MpaFrame Request(std::optional<MpaDepths> depths, bool crc = false) {
  MpaFrame frame;
  frame.crc = crc;
  frame.depths = depths;
  return frame;
}

MpaFrame Reply(std::optional<MpaDepths> depths, bool crc = false) {
  MpaFrame frame = Request(depths, crc);
  frame.kind = MpaKind::kReply;
  return frame;
}

TEST(MpaRequestTest, EnhancedOffersBothSilentKinds) {
  const MpaFrame request = MakeRequest({.crc = true, .ird = 0, .ord = 0}, true);
  EXPECT_EQ(request.revision, 2);
  EXPECT_TRUE(request.crc);
  EXPECT_FALSE(request.markers);
  EXPECT_EQ(
      *request.depths,
      (MpaDepths{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 1, .ord = 1}));
}

TEST(MpaRequestTest, Plain) {
  const MpaFrame request = MakeRequest({}, false);
  EXPECT_EQ(request.revision, 1);
  EXPECT_FALSE(request.depths.has_value());
}

// iWARP checklist 2: the reply mirrors revision and S.
TEST(MpaAcceptTest, MirrorsRevision) {
  for (const uint8_t revision : {0, 1, 2}) {
    MpaFrame request = Request(std::nullopt);
    request.revision = revision;
    const auto answer = AcceptRequest(request, {.crc = false, .ird = 4, .ord = 5});
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->reply.revision, revision);
    EXPECT_FALSE(answer->reply.depths.has_value());
    EXPECT_EQ(answer->agreement.ird, 4);
    EXPECT_EQ(answer->agreement.ord, 1);  // nobody said what the peer holds
    EXPECT_EQ(AcceptRequest(request, {.ord = 0})->agreement.ord, 0);
  }
}

// Checklist 10.
TEST(MpaAcceptTest, MarkersAreRefused) {
  MpaFrame request = Request(MpaDepths{});
  request.markers = true;
  EXPECT_FALSE(AcceptRequest(request, {}).has_value());
  const MpaFrame reject = MakeReject(2, true);
  EXPECT_TRUE(reject.reject);
  EXPECT_FALSE(reject.markers);
  EXPECT_EQ(reject.depths, (MpaDepths{.peer_to_peer = true, .rtr_write = true, .ird = 1}));
  EXPECT_FALSE(MakeReject(1, false).depths.has_value());
}

// Checklist 11.
TEST(MpaAcceptTest, EitherSideSwitchesTheCrcOn) {
  for (const bool peer : {false, true}) {
    for (const bool own : {false, true}) {
      const auto answer = AcceptRequest(Request(std::nullopt, peer), {.crc = own});
      EXPECT_EQ(answer->reply.crc, peer || own);
      EXPECT_EQ(answer->agreement.crc, peer || own);
      MpaFrame request = MakeRequest({.crc = own}, false);
      const MpaOutcome outcome = EvaluateReply(request, Reply(std::nullopt, peer), {.crc = own});
      EXPECT_EQ(outcome.kind, Kind::kAccepted);
      EXPECT_EQ(outcome.agreement.crc, peer || own);
    }
  }
}

// Checklist 14, 15.
TEST(MpaAcceptTest, Depths) {
  const MpaWish wish{.crc = false, .ird = 8, .ord = 8};
  auto answer = AcceptRequest(Request(MpaDepths{.ird = 4, .ord = 6}), wish);
  EXPECT_EQ(*answer->reply.depths, (MpaDepths{.ird = 6, .ord = 4}));
  EXPECT_EQ(answer->agreement.ird, 6);
  EXPECT_EQ(answer->agreement.ord, 4);
  answer = AcceptRequest(Request(MpaDepths{.ird = 100, .ord = 100}), wish);
  EXPECT_EQ(*answer->reply.depths, (MpaDepths{.ird = 8, .ord = 8}));
  answer = AcceptRequest(
      Request(MpaDepths{.ird = kMpaDepthUnspecified, .ord = kMpaDepthUnspecified}), wish);
  EXPECT_EQ(*answer->reply.depths,
            (MpaDepths{.ird = kMpaDepthUnspecified, .ord = kMpaDepthUnspecified}));
  EXPECT_EQ(answer->agreement.ird, 8);
  EXPECT_EQ(answer->agreement.ord, 1);
}

// Checklist 16: all sixteen words.
TEST(MpaAcceptTest, PeerToPeer) {
  for (int bits = 0; bits < 16; ++bits) {
    const MpaDepths asked{.peer_to_peer = (bits & 8) != 0,
                          .rtr_send = (bits & 4) != 0,
                          .rtr_write = (bits & 2) != 0,
                          .rtr_read = (bits & 1) != 0,
                          .ird = 1,
                          .ord = 1};
    const auto answer = AcceptRequest(Request(asked), {});
    const MpaDepths& reply = *answer->reply.depths;
    EXPECT_EQ(reply.peer_to_peer, asked.peer_to_peer);
    EXPECT_FALSE(reply.rtr_send);
    if (!asked.peer_to_peer) {
      EXPECT_FALSE(reply.rtr_write || reply.rtr_read);
      EXPECT_EQ(answer->agreement.rtr, Rtr::kNone);
      continue;
    }
    EXPECT_NE(reply.rtr_write, reply.rtr_read);
    EXPECT_EQ(reply.rtr_read, asked.rtr_read && !asked.rtr_write);
  }
}

// Checklist 21: room for the zero-length read although nobody wants reads.
TEST(MpaAcceptTest, ReadAsFirstFpduNeedsAPlace) {
  const auto answer =
      AcceptRequest(Request(MpaDepths{.peer_to_peer = true, .rtr_read = true, .ird = 0, .ord = 0}),
                    {.ird = 0, .ord = 0});
  EXPECT_EQ(answer->reply.depths->ird, 1);
  EXPECT_EQ(answer->agreement.ird, 1);
  EXPECT_EQ(answer->agreement.rtr, Rtr::kRead);
}

TEST(MpaReplyTest, Rejected) {
  MpaFrame reply = Reply(MpaDepths{});
  reply.reject = true;
  EXPECT_EQ(EvaluateReply(MakeRequest({}, true), reply, {}).kind, Kind::kRejected);
  // Also without a word and with markers: R is checked first.
  reply.depths.reset();
  reply.markers = true;
  EXPECT_EQ(EvaluateReply(MakeRequest({}, true), reply, {}).kind, Kind::kRejected);
}

TEST(MpaReplyTest, NotAnAnswer) {
  MpaFrame reply = Reply(std::nullopt);
  MpaOutcome outcome = EvaluateReply(MakeRequest({}, true), reply, {});
  EXPECT_EQ(outcome.kind, Kind::kBroken);
  EXPECT_EQ(outcome.error, kBadStartup);
  outcome = EvaluateReply(MakeRequest({}, false), Reply(MpaDepths{}), {});
  EXPECT_EQ(outcome.kind, Kind::kBroken);
  reply = Reply(MpaDepths{.ird = 1, .ord = 1});
  reply.markers = true;
  EXPECT_EQ(EvaluateReply(MakeRequest({}, true), reply, {}).kind, Kind::kBroken);
}

// Checklist 22.
TEST(MpaReplyTest, Depths) {
  const MpaWish wish{.crc = false, .ird = 4, .ord = 4};
  const MpaFrame request = MakeRequest(wish, true);
  MpaOutcome outcome = EvaluateReply(request, Reply(MpaDepths{.ird = 2, .ord = 3}), wish);
  EXPECT_EQ(outcome.kind, Kind::kAccepted);
  EXPECT_EQ(outcome.agreement.ord, 2);
  EXPECT_EQ(outcome.agreement.ird, 4);
  EXPECT_EQ(outcome.agreement.rtr, Rtr::kNone);
  outcome = EvaluateReply(request, Reply(MpaDepths{.ird = 4, .ord = 5}), wish);
  EXPECT_EQ(outcome.kind, Kind::kBroken);
  EXPECT_EQ(outcome.error, kInsufficientIrd);
  outcome = EvaluateReply(
      request, Reply(MpaDepths{.ird = kMpaDepthUnspecified, .ord = kMpaDepthUnspecified}), wish);
  EXPECT_EQ(outcome.kind, Kind::kAccepted);
  EXPECT_EQ(outcome.agreement.ord, 1);
  outcome = EvaluateReply(MakeRequest(wish, false), Reply(std::nullopt), wish);
  EXPECT_EQ(outcome.kind, Kind::kAccepted);
  EXPECT_EQ(outcome.agreement.ird, 4);
  EXPECT_EQ(outcome.agreement.ord, 1);
}

TEST(MpaReplyTest, FirstFpdu) {
  const MpaFrame request = MakeRequest({}, true);
  const auto rtr = [&](bool send, bool write, bool read) {
    return EvaluateReply(request,
                         Reply(MpaDepths{.peer_to_peer = true,
                                         .rtr_send = send,
                                         .rtr_write = write,
                                         .rtr_read = read,
                                         .ird = 1,
                                         .ord = 1}),
                         {});
  };
  EXPECT_EQ(rtr(false, true, false).agreement.rtr, Rtr::kWrite);
  EXPECT_EQ(rtr(false, true, true).agreement.rtr, Rtr::kWrite);
  EXPECT_EQ(rtr(true, false, true).agreement.rtr, Rtr::kRead);
  EXPECT_EQ(rtr(true, false, false).error, kNoMatchingRtr);
  EXPECT_EQ(rtr(false, false, false).kind, Kind::kBroken);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
