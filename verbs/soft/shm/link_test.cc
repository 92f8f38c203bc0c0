// One link whose peer is this test, which writes the peer's line by hand.
#include "verbs/soft/shm/link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/descriptor.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/peer.h"
#include "verbs/soft/shm/testing_bare_link.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

// A poster that needs room sees the peer's progress after the last poll and before the link cools.
// The requests that this progress confirms are still to be found.
TEST(LinkTest, ALinkThatCoolsLooksForConfirmationsOnceMore) {
  ControlThread& loop = **ControlThread::Get();
  auto context = OpenForTest();
  TestEnd end(*context, 4096, 2 * kSlots);
  auto& pair = static_cast<SoftQueuePair&>(end.pair());
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  ASSERT_TRUE(arena->PayConnection(0));
  const auto peer = std::make_shared<Peer>(Host::Get(loop), loop, 0, Descriptor(), 0, arena);
  const auto link = ShmLink::Make(loop);
  link->Bind(peer, 0);
  link->Hold(pair);
  ASSERT_TRUE(pair.Attach(*link).ok());
  loop.Post([&] {
    peer->Die();  // nobody is told anything
    EXPECT_TRUE(pair.Established(*link, {}));
  });
  loop.Drain();
  loop.Drain();  // the poll that followed

  Completion completion;
  for (uint64_t i = 0; i < kSlots; i++) end.Send(i, 0, 8, kConfirm);
  EXPECT_EQ(end.sends().Poll(&completion, 1), 0);
  EXPECT_EQ(end.receives().Poll(&completion, 1), 0);
  constexpr uint64_t kTaken = kSlots / 2;
  loop.Post([&] {  // there, so that the loop's own poll cannot come between
    link->Heat();
    arena->connection(0).credit[1].head.store(kTaken);
    end.Send(kSlots, 0, 8, kConfirm);
    link->Cool();
    EXPECT_TRUE(link->Arrived());
  });
  loop.Drain();
  pair.MarkArrived();
  for (uint64_t i = 0; i < kTaken; i++) EXPECT_EQ(end.Next(end.sends()).id, i);
  EXPECT_FALSE(link->Arrived()) << "one look is enough";
  end.DestroyPair();
  loop.Drain();
}

// Nobody will take the messages any more. Their chunks go back as far as the peer says it has sent.
TEST(LinkTest, WhatIsDiscardedGivesItsChunksBack) {
  BareLink bare;
  const auto chunk = [](uint32_t number) { return ChunkLead{{}, number, 0}; };
  bare.Put(Op::kSendChunk, kLast, 100, chunk(3));
  bare.Put(Op::kSend, kLast, 8, uint64_t{4});
  bare.Put(Op::kWriteChunk, kLast, 100, chunk(5));
  bare.Put(Op::kSendChunk, kLast, 100, chunk(kChunks));
  bare.Put(Op::kSendChunk, kLast, 100, chunk(6));
  bare.PutReply(Op::kReplyChunk, kLast, 100, chunk(7));
  bare.PutReply(Op::kReplyChunk, kLast, 100, chunk(8));
  bare.link().DiscardInbound(4, 1);
  EXPECT_EQ(bare.returned(), uint64_t{1} << 3 | uint64_t{1} << 5 | uint64_t{1} << 7);
  bare.link().DiscardInbound(UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(bare.returned(), uint64_t{1} << 3 | uint64_t{1} << 5 | uint64_t{1} << 6 |
                                 uint64_t{1} << 7 | uint64_t{1} << 8);
}

// Others have all chunks: a piece waits until all of it fits, and overwrites nothing.
TEST(LinkTest, APieceWaitsForItsSlots) {
  BareLink bare;
  bare.TakeChunks();
  constexpr uint64_t kShort = kSlots - 2;
  for (uint64_t i = 0; i < kShort; i++) bare.end().Send(i, 0, 8);
  bare.end().Send(kShort, 0, 1000);
  EXPECT_TRUE(bare.Has(0));
  EXPECT_TRUE(bare.Has(kShort - 1));
  EXPECT_FALSE(bare.Has(kShort));
}

TEST(LinkTest, EachPieceOfAWriteHasItsAddress) {
  BareLink bare;
  bare.TakeChunks();
  bare.end().OneSided(Opcode::kWrite, 1, 0, 500, 4096, 1);
  const Word first = Word::Unpack(bare.block().data[1][0].word.load());
  EXPECT_LT(first.bytes, 500u);
  ASSERT_TRUE(bare.Has(first.slots));
  EXPECT_EQ(bare.LeadAt<Target>(0).address, 4096u);
  EXPECT_EQ(bare.LeadAt<Target>(first.slots).address, 4096u + first.bytes);
}

// The peer has taken what this link had in a chunk, and since then others have all chunks.
TEST(LinkTest, AHotLinkWithoutChunksSendsPieces) {
  BareLink bare;
  bare.link().Heat();
  bare.end().Send(1, 0, 1000);
  bare.TakeChunks();
  bare.peer_line().head.store(1);
  bare.end().Send(2, 0, 1000);
  EXPECT_TRUE(bare.Has(1));
}

TEST(LinkTest, AChunkThatIsNotFilledIsFree) {
  BareLink bare;
  const size_t size = bare.end().memory().size();
  bare.end().Send(1, size - 1000, 2000);
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.TakeChunks(), kChunks);
}

// A poller that does not pump must hear of the room.
TEST(LinkTest, RoomIsAnArrivalToAColdLink) {
  BareLink bare;
  for (uint64_t i = 0; i <= kSlots; i++) bare.end().Send(i, 0, 8);
  EXPECT_FALSE(bare.link().Arrived());
  bare.peer_line().head.store(16);
  EXPECT_TRUE(bare.link().Arrived());
}

// Others have all chunks since the first answer.
TEST(LinkTest, AnswersWithoutChunksGoInPieces) {
  BareLink bare;
  const auto address = reinterpret_cast<uint64_t>(bare.end().memory().data());
  const ReadLead read = {address, bare.end().key(), 1000};
  bare.Put(Op::kRead, kLast, sizeof read, read);
  bare.Attend();
  ASSERT_TRUE(bare.HasReply(0));
  bare.TakeChunks();
  bare.peer_line().reply_head.store(1);
  bare.Put(Op::kRead, kLast, sizeof read, read);
  bare.Attend();
  EXPECT_TRUE(bare.HasReply(1));
}

// A sender may wait for nothing but the chunk.
TEST(LinkTest, AChunkComesBackAtOnce) {
  BareLink bare;
  bare.peer_line().starving.store(1);
  bare.Put(Op::kWriteChunk, kLast, 0, ChunkLead{{}, 3, 0});
  bare.Attend();
  EXPECT_EQ(bare.returned(), uint64_t{1} << 3);
  EXPECT_EQ(bare.line().head.load(), 1u);
  EXPECT_TRUE(bare.TakeMark());
  bare.end().OneSided(Opcode::kRead, 1, 0, 8, 4096, 1);
  bare.TakeMark();
  bare.PutReply(Op::kReplyChunk, kLast, 8, ChunkLead{{}, 4, 0});
  bare.Attend();
  EXPECT_EQ(bare.returned(), uint64_t{1} << 3 | uint64_t{1} << 4);
  EXPECT_EQ(bare.line().reply_head.load(), 1u);
  EXPECT_TRUE(bare.TakeMark());
}

TEST(LinkTest, WhoStarvesIsToldOfCreditForShortMessages) {
  BareLink bare;
  bare.peer_line().starving.store(1);
  for (uint64_t i = 0; i < kSlots; i++) {
    bare.end().Receive(i, 0, 8);
    bare.Put(Op::kSend, kLast, 8, i);
  }
  bare.Attend();
  EXPECT_GT(bare.line().head.load(), 0u);
  EXPECT_TRUE(bare.TakeMark());
}

// Nobody polls at the peer.
TEST(LinkTest, WhoWaitsForAConfirmationIsTold) {
  BareLink bare;
  bare.end().Receive(1, 0, 8);
  bare.Put(Op::kSend, kLast | kAcknowledge, 8, uint64_t{1});
  bare.peer_line().armed.store(1);
  bare.Attend();
  EXPECT_EQ(bare.line().head.load(), 1u);
  EXPECT_TRUE(bare.TakeMark());
}

TEST(LinkTest, ItsLineSaysWhatItIsToBeToldOf) {
  BareLink bare;
  const auto line = [&] { return bare.line().armed.load() * 2 + bare.line().starving.load(); };
  bare.link().Heat();
  EXPECT_EQ(line(), 0u);
  bare.link().Cool();
  EXPECT_EQ(line(), 2u) << "of what comes";
  bare.end().Send(1, 0, 8, kConfirm);
  bare.link().Heat();
  bare.link().Cool();
  EXPECT_EQ(line(), 3u) << "and of credit";
  bare.link().Heat();
  EXPECT_EQ(line(), 0u);
}

// Puts one read more than there is room for answers.
void PutReads(BareLink& bare) {
  const auto address = reinterpret_cast<uint64_t>(bare.end().memory().data());
  const ReadLead read = {address, bare.end().key(), 8};
  for (uint32_t i = 0; i <= kReplySlots; i++) bare.Put(Op::kRead, kLast, sizeof read, read);
  while (!bare.link().AllTaken() || !bare.HasReply(kReplySlots - 1)) bare.Attend();
}

TEST(LinkTest, AReadThatWaitsForRoomIsToBeTold) {
  BareLink bare;
  PutReads(bare);
  bare.link().Heat();
  bare.link().Cool();
  EXPECT_EQ(bare.line().starving.load(), 1u);
}

TEST(LinkTest, RoomForAnAnswerIsAnArrival) {
  BareLink bare;
  PutReads(bare);
  EXPECT_FALSE(bare.link().Arrived());
  bare.peer_line().reply_head.store(1);
  EXPECT_TRUE(bare.link().Arrived());
}

TEST(LinkTest, AnAnswerIsAnArrival) {
  BareLink bare;
  bare.end().OneSided(Opcode::kRead, 1, 0, 8, 4096, 1);
  EXPECT_FALSE(bare.link().Arrived());
  bare.PutReply(Op::kReply, kLast, 8, uint64_t{1});
  EXPECT_TRUE(bare.link().Arrived());
}

// Otherwise a poller would poll without end.
TEST(LinkTest, WhatIsHeldIsNoArrivalUntilThereIsAReceive) {
  BareLink bare;
  bare.Put(Op::kSend, kLast, 8, uint64_t{1});
  EXPECT_TRUE(bare.link().Arrived());
  (*ControlThread::Get())->RunAndWait([&] {  // on the loop, which takes nothing meanwhile
    bare.pair().Attend();
    EXPECT_FALSE(bare.link().Arrived());
    bare.end().Receive(1, 0, 8);
    EXPECT_TRUE(bare.link().Arrived());
  });
}

TEST(LinkTest, RoomIsNoArrivalToAHotLink) {
  BareLink bare;
  for (uint64_t i = 0; i <= kSlots; i++) bare.end().Send(i, 0, 8);
  bare.link().Heat();
  bare.peer_line().head.store(16);
  EXPECT_FALSE(bare.link().Arrived());
  bare.link().Cool();
}

TEST(LinkTest, APollTakesNoMoreThanIsAskedFor) {
  ControlThread& loop = **ControlThread::Get();
  for (const uint8_t flags : {uint8_t{kLast}, uint8_t{kLast | kAcknowledge}}) {
    BareLink bare;
    for (uint64_t i = 0; i < 2; i++) {
      bare.end().Receive(i, 0, 8);
      bare.Put(Op::kSend, flags, 8, i);
    }
    loop.RunAndWait([&] { bare.link().Poll(1); });
    EXPECT_FALSE(bare.link().AllTaken());
    loop.RunAndWait([&] { bare.link().Poll(1); });
    EXPECT_TRUE(bare.link().AllTaken());
  }
}

TEST(LinkTest, AWriteIsOpenBetweenItsPieces) {
  BareLink bare;
  const Target here = {reinterpret_cast<uint64_t>(bare.end().memory().data()), bare.end().key(), 0};
  const auto after = [&](uint8_t flags) {
    bare.Put(Op::kWrite, flags, 8, here);
    bare.Attend();
    return bare.link().open_write();
  };
  EXPECT_EQ(after(0), OpenWrite::kPlain);
  EXPECT_EQ(after(kLast), OpenWrite::kNone);
  EXPECT_EQ(after(kWithImmediate), OpenWrite::kWithImmediate);
  EXPECT_EQ(after(kWithImmediate | kLast), OpenWrite::kNone) << "all is placed, and held";
}

// Nobody has polled since the confirmation came.
TEST(LinkTest, AConfirmationComesBeforeTheEnd) {
  BareLink bare;
  bare.end().Send(1, 0, 8, kConfirm);
  bare.peer_line().head.store(1);
  bare.pair().Fail(Status::kTransport);
  bare.end().Await(bare.end().disconnected);
  EXPECT_EQ(bare.end().Next(bare.end().sends()).status, Status::kSuccess);
}

// It comes between Attach and the answer, and the peer hears that nobody takes the request. Two
// answers would be nonsense to it, for which it ends every connection of the two processes.
TEST(LinkTest, ADisconnectInsideAnAcceptIsOneAnswer) {
  ControlThread& loop = **ControlThread::Get();
  auto context = OpenForTest();
  TestEnd end(*context);
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const Fd theirs(sockets[1]);
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  ASSERT_TRUE(arena->PayConnection(0));
  const auto peer =
      std::make_shared<Peer>(Host::Get(loop), loop, 1,
                             OpenHighAs<Descriptor>([&] { return sockets[0]; }), getpid(), arena);
  const auto link = ShmLink::Make(loop);
  link->Bind(peer, 0);
  link->phase = ShmLink::Phase::kRequested;
  auto& pair = static_cast<SoftQueuePair&>(end.pair());
  link->Hold(pair);
  ASSERT_TRUE(pair.Attach(*link).ok());
  pair.Disconnect(DisconnectMode::kAbrupt);
  ShmLink::Answer accept;
  accept.type = MessageType::kAccept;
  link->GiveAnswer(std::move(accept));
  for (int i = 0; i < 3; ++i) loop.Drain();
  Message message;
  ASSERT_EQ(ReceiveMessage(theirs.get(), &message), SocketResult::kDone);
  EXPECT_EQ(message.type, MessageType::kRefuse);
  EXPECT_EQ(ReceiveMessage(theirs.get(), &message), SocketResult::kAgain);
  loop.RunAndWait([&] { peer->Die(); });
  EXPECT_EQ(end.failed, 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
