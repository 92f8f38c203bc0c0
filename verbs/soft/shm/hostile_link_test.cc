// What a hostile peer's words do to one link: how far they are believed.
#include <cstdint>

#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_bare_link.h"

namespace viaduct::verbs::shm {
namespace {

// It has said that it sends nothing more, and goes on: one lap is taken.
TEST(HostileLinkTest, AnEndIsNoFurtherThanTheRing) {
  BareLink bare;
  bare.link().EndAt(UINT64_MAX);
  const auto lap = [&] {
    for (uint32_t i = 0; i < kSlots; i++) bare.Put(Op::kWrite, kLast, 0, Target{});
  };
  lap();
  EXPECT_FALSE(bare.link().AllTaken());
  while (bare.line().head.load() != kSlots) bare.Attend();
  lap();
  EXPECT_TRUE(bare.link().AllTaken());
}

// Credit for what was never sent.
TEST(HostileLinkTest, ACreditBeyondAllBreaksTheConnection) {
  BareLink bare;
  bare.peer_line().head.store(kSlots + 1);
  for (uint64_t i = 0; i <= kSlots; i++) bare.end().Send(i, 0, 8);
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.end().cause, DisconnectCause::kBroken);
}

TEST(HostileLinkTest, ACreditBeyondAllAnswersBreaksTheConnection) {
  BareLink bare;
  bare.peer_line().reply_head.store(kReplySlots + 1);
  const ReadLead read = {0, 0, 0};
  for (uint32_t i = 0; i <= kReplySlots; i++) {
    bare.Put(Op::kRead, kLast, sizeof read, read);
    bare.Attend();
    if (bare.end().disconnected != 0) break;
  }
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.end().cause, DisconnectCause::kBroken);
}

// Pieces without end, of which nothing is placed.
TEST(HostileLinkTest, AMessageHasNoMoreThan4GiB) {
  BareLink bare(NoReceive::kDrop);
  const ChunkLead nowhere = {{4096, 0x12345678, 0}, 0, 0};
  constexpr uint64_t kPieces = (uint64_t{1} << 32) / kChunkBytes;
  for (uint64_t piece = 1; piece < kPieces; piece++) {
    bare.Put(Op::kWriteChunk, 0, kChunkBytes, nowhere);
    if (piece % kSlots == 0) bare.Attend();
  }
  bare.Attend();
  EXPECT_EQ(bare.line().head.load(), kPieces - 1);
  bare.Put(Op::kWriteChunk, kLast, kChunkBytes, nowhere);
  bare.Attend();
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.end().cause, DisconnectCause::kBroken);
}

// What would be an answer but for one word of it.
TEST(HostileLinkTest, AnAnswerIsWhatItShouldBe) {
  const auto breaks = [](const char* what, uint32_t chunk, uint32_t slots) {
    SCOPED_TRACE(what);
    BareLink bare;
    bare.end().OneSided(Opcode::kRead, 1, 0, 8, 4096, 1);
    bare.PutReply(Op::kReplyChunk, kLast, 8, ChunkLead{{}, chunk, 0}, slots);
    bare.Attend();
    EXPECT_NE(bare.end().Next(bare.end().sends()).status, Status::kSuccess);
    bare.end().Await(bare.end().disconnected);
  };
  breaks("the first chunk that there is not", kChunks, 1);
  breaks("a huge chunk", UINT32_MAX, 1);
  breaks("a chunk in two slots", 0, 2);
  breaks("a chunk in no slot", 0, 0);
  BareLink bare;
  bare.end().OneSided(Opcode::kRead, 1, 0, 8, 4096, 1);
  bare.PutReply(Op::kReply, kLast, 8, uint64_t{1}, 2);
  bare.Attend();
  EXPECT_NE(bare.end().Next(bare.end().sends()).status, Status::kSuccess);
}

TEST(HostileLinkTest, AnAnswerTooManyBreaksTheConnection) {
  BareLink bare;
  bare.end().OneSided(Opcode::kRead, 1, 0, 8, 4096, 1);
  for (int i = 0; i < 2; i++) bare.PutReply(Op::kReply, kLast, 8, uint64_t{1});
  bare.Attend();
  EXPECT_EQ(bare.end().Next(bare.end().sends()).status, Status::kSuccess);
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.end().cause, DisconnectCause::kBroken);
}

// It is nonsense before it is a window that there is not.
TEST(HostileLinkTest, TheEndOfAWindowIsOneSlotBetweenMessages) {
  const auto lead = InvalidateLead{0x12345678, 0};
  const auto breaks = [](const char* what, Status verdict, auto attack) {
    SCOPED_TRACE(what);
    BareLink bare;
    bare.end().Receive(1, 0, 64);
    attack(bare);
    bare.Attend();
    bare.end().Await(bare.end().disconnected);
    EXPECT_EQ(bare.pair().peer_verdict(), verdict);
  };
  breaks("no window", Status::kRemoteAccess,
         [&](BareLink& bare) { bare.Put(Op::kInvalidate, 0, sizeof lead, lead); });
  breaks("two slots", Status::kTransport,
         [&](BareLink& bare) { bare.Put(Op::kInvalidate, 0, sizeof lead, lead, 2); });
  breaks("inside a send", Status::kTransport, [&](BareLink& bare) {
    bare.Put(Op::kSend, 0, 8, uint64_t{1});
    bare.Put(Op::kInvalidate, 0, sizeof lead, lead);
  });
}

TEST(HostileLinkTest, AShortSendInsideAWrite) {
  BareLink bare;
  bare.end().Receive(1, 0, 64);
  const Target here = {reinterpret_cast<uint64_t>(bare.end().memory().data()), bare.end().key(), 0};
  bare.Put(Op::kWrite, 0, 8, here);
  bare.Put(Op::kSend, kLast, 8, uint64_t{1});
  bare.Attend();
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.pair().peer_verdict(), Status::kTransport);
}

}  // namespace
}  // namespace viaduct::verbs::shm
