// How far one link believes what a hostile peer writes.
#include <cstdint>

#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_bare_link.h"

namespace viaduct::verbs::shm {
namespace {

// The peer has said that it sends nothing more, but goes on: one lap is taken.
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

// Pieces without end, none of which is placed.
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

// Each would be a valid answer but for one word of it.
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

// Nonsense is noticed before the window is looked up, which does not exist.
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

// Each would be taken but for one word of it.
TEST(HostileLinkTest, APieceIsWhatItShouldBe) {
  const auto breaks = [](const char* what, auto attack) {
    SCOPED_TRACE(what);
    BareLink bare;
    bare.end().Receive(1, 0, 1 << 20);
    attack(bare,
           Target{reinterpret_cast<uint64_t>(bare.end().memory().data()), bare.end().key(), 0});
    bare.Attend();
    bare.end().Await(bare.end().disconnected);
    EXPECT_EQ(bare.pair().peer_verdict(), Status::kTransport);
    EXPECT_NE(bare.end().Next(bare.end().receives()).status, Status::kSuccess);
  };
  constexpr uint32_t kFull = kBodyBytes;
  const uint64_t data = 1;
  const auto chunk = [](const Target& target, uint32_t number) {
    return ChunkLead{target, number, 0};
  };
  breaks("a send in no slot",
         [&](BareLink& bare, const Target&) { bare.Put(Op::kSend, kLast, 0, data, 0); });
  breaks("a send in more slots than there are", [&](BareLink& bare, const Target&) {
    bare.Put(Op::kSend, kLast, kFull, data, kSlots + 1);
  });
  breaks("a send longer than its slot",
         [&](BareLink& bare, const Target&) { bare.Put(Op::kSend, kLast, kFull + 1, data); });
  breaks("one with immediate data", [&](BareLink& bare, const Target&) {
    bare.Put(Op::kSend, kLast | kWithImmediate, kFull, data);
  });
  breaks("a piece of a send without a byte",
         [&](BareLink& bare, const Target&) { bare.Put(Op::kSend, 0, 0, data); });
  breaks("a send in the first chunk that there is not", [&](BareLink& bare, const Target&) {
    bare.Put(Op::kSendChunk, kLast, 8, chunk({}, kChunks));
  });
  breaks("a send longer than its chunk", [&](BareLink& bare, const Target&) {
    bare.Put(Op::kSendChunk, kLast, kChunkBytes + 1, chunk({}, 0));
  });
  breaks("a send in a chunk and two slots", [&](BareLink& bare, const Target&) {
    bare.Put(Op::kSendChunk, kLast, 8, chunk({}, 0), 2);
  });
  breaks("a write longer than its slot", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kWrite, kLast, kFull - sizeof here + 1, here);
  });
  breaks("a piece of a write without a byte",
         [&](BareLink& bare, const Target& here) { bare.Put(Op::kWrite, 0, 0, here); });
  breaks("a write in the first chunk that there is not", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kWriteChunk, kLast, 8, chunk(here, kChunks));
  });
  breaks("a write longer than its chunk", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kWriteChunk, kLast, kChunkBytes + 1, chunk(here, 0));
  });
  breaks("a write inside a send", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kSend, 0, 8, data);
    bare.Put(Op::kWrite, kLast, 8, here);
  });
  breaks("a read in two slots", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kRead, kLast, sizeof(ReadLead), ReadLead{here.address, here.key, 8}, 2);
  });
  breaks("a read inside a send", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kSend, 0, 8, data);
    bare.Put(Op::kRead, kLast, sizeof(ReadLead), ReadLead{here.address, here.key, 8});
  });
  breaks("an atomic of no kind", [&](BareLink& bare, const Target& here) {
    bare.Put(Op::kAtomic, kLast, sizeof(AtomicLead), AtomicLead{here.address, here.key, 3, 0, 0});
  });
  breaks("reads without end", [&](BareLink& bare, const Target& here) {
    for (uint32_t i = 0; i < bare.pair().max_reads_in() + kReplySlots + 1; i++) {
      bare.Put(Op::kRead, kLast, sizeof(ReadLead), ReadLead{here.address, here.key, 8});
      bare.Attend();
    }
  });
}

// The next receive of a shared queue is kept for the oldest message that waits: it stays what it
// is.
TEST(HostileLinkTest, AMessageThatWaitsIsNotTakenBack) {
  const auto breaks = [](const char* what, auto attack) {
    SCOPED_TRACE(what);
    const auto context = OpenForTest();
    SharedReceives shared(*context);
    BareLink hostile(*context, shared), honest(*context, shared);
    for (BareLink* link : {&hostile, &honest}) {
      link->Put(Op::kSend, kLast, 8, uint64_t{1});
      link->Attend();
    }
    attack(hostile);
    honest.end().Receive(1, 0, 64);
    hostile.Attend();
    EXPECT_EQ(hostile.pair().peer_verdict(), Status::kTransport);
    EXPECT_EQ(honest.end().Next(honest.end().receives()).status, Status::kSuccess);
    EXPECT_EQ(honest.end().disconnected, 0);
  };
  breaks("its slot is empty again", [](BareLink& link) { link.TakeBack(); });
  breaks("it is a write", [](BareLink& link) { link.Replace(Op::kWrite, kLast, 0); });
  breaks("it has another length", [](BareLink& link) { link.Replace(Op::kSend, kLast, 9); });
}

// When it has been taken, its slot may be empty, or hold another one.
TEST(HostileLinkTest, AMessageThatWaitedIsForgotten) {
  BareLink bare;
  bare.Put(Op::kSend, kLast, 8, uint64_t{1});
  bare.Attend();
  bare.Attend();
  bare.end().Receive(1, 0, 64);
  EXPECT_EQ(bare.end().Next(bare.end().receives()).status, Status::kSuccess);
  bare.Attend();
  bare.end().Receive(2, 0, 64);
  bare.Put(Op::kSend, kLast, 9, uint64_t{1});
  bare.Attend();
  EXPECT_EQ(bare.end().Next(bare.end().receives()).length, 9u);
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
