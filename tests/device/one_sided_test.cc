// Writes and reads: placing, order relative to sends, fences, access rights.
#include <algorithm>
#include <utility>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class OneSidedTest : public DeviceTest {
 protected:
  static EndOptions Large() {
    EndOptions options;
    options.memory = 3 << 20;
    return options;
  }
};

constexpr size_t kSizes[] = {0, 1, 8, 56, 57, 4096, 8193, 65536, 1 << 20};

TEST_F(OneSidedTest, AWriteIsPlacedWhereItShould) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  int seed = 0;
  for (size_t size : kSizes) {
    std::fill(to.memory().begin(), to.memory().end(), 0xee);
    from.Put(11, Pattern(size, ++seed));
    ASSERT_EQ(from.Write(seed, 11, size, to, 1001, kConfirm), PostResult::kOk);
    const Completion done = Expect(from.sends(), seed);
    EXPECT_EQ(done.opcode, Opcode::kWrite);
    EXPECT_TRUE(to.Get(1001, size) == Pattern(size, seed)) << size;
    EXPECT_EQ(to.memory()[1000], 0xee);
    EXPECT_EQ(to.memory()[1001 + size], 0xee);
  }
  EXPECT_TRUE(to.receives().got().empty());
  EXPECT_EQ(to.events().count(), 0u);
}

TEST_F(OneSidedTest, TheTargetNeedNotPoll) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  Forget(to);
  for (size_t size : kSizes) {
    from.Put(0, Pattern(size, 5));
    ASSERT_EQ(from.Write(1, 0, size, to, 0, kConfirm), PostResult::kOk);
    Expect(from.sends(), 1);
    ASSERT_EQ(from.Read(2, 1 << 20, size, to, 0), PostResult::kOk);
    Expect(from.sends(), 2);
    EXPECT_TRUE(from.Get(1 << 20, size) == Pattern(size, 5)) << size;
  }
}

TEST_F(OneSidedTest, AWriteIsPlacedBeforeALaterSendIsReceived) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  int seed = 0;
  for (size_t size : kSizes) {
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    from.Put(0, Pattern(size, ++seed));
    ASSERT_EQ(from.Write(2, 0, size, to, 64, 0), PostResult::kOk);
    ASSERT_EQ(from.Send(3, 0, 0), PostResult::kOk);
    Expect(to.receives(), 1);
    EXPECT_TRUE(to.Get(64, size) == Pattern(size, seed)) << size;
    Expect(from.sends(), 2);
    Expect(from.sends(), 3);
  }
}

TEST_F(OneSidedTest, AWriteWithImmediateConsumesAReceive) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  ConnectWithImmediate(from, to);
  int seed = 0;
  for (size_t size : kSizes) {
    std::fill(to.memory().begin(), to.memory().begin() + 8, 0xee);
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    from.Put(0, Pattern(size, ++seed));
    ASSERT_EQ(from.Write(2, 0, size, to, 64, kImmediate | (seed % 2 ? kSolicited : 0), 7 * seed),
              PostResult::kOk);
    const Completion received = Expect(to.receives(), 1);
    EXPECT_EQ(received.opcode, Opcode::kReceiveWrite);
    EXPECT_TRUE(received.has_immediate);
    EXPECT_EQ(received.immediate, 7u * seed);
    EXPECT_TRUE(received.solicited == (seed % 2 == 1) || !device().tells_solicited());
    EXPECT_EQ(received.length, size);
    EXPECT_TRUE(to.Get(64, size) == Pattern(size, seed)) << size;
    EXPECT_EQ(to.Get(0, 8), Bytes(8, 0xee)) << "the receive's own memory is not touched";
    EXPECT_EQ(Expect(from.sends(), 2).opcode, Opcode::kWrite);
  }
}

// The write may be of any length: when its first byte is refused, the target already knows that it
// takes a receive.
TEST_F(OneSidedTest, ARefusedWriteWithImmediateFailsItsReceive) {
  for (size_t size : {size_t{100}, size_t{300000}}) {
    SCOPED_TRACE(size);
    End& from = NewEnd(a(), Large());
    End& to = NewEnd(b(), Large());
    ConnectWithImmediate(from, to);
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
    const auto address = reinterpret_cast<uint64_t>(to.memory().data());
    ASSERT_EQ(from.PostTo(Opcode::kWrite, 3, size, address, 77, kConfirm | kImmediate),
              PostResult::kOk);
    Expect(from.sends(), 3, Status::kRemoteAccess);
    const Completion refused = Expect(to.receives(), 1, Status::kRemoteAccess);
    EXPECT_EQ(refused.opcode, Opcode::kReceiveWrite);
    if (refused.has_immediate) {  // it may not have arrived yet
      EXPECT_EQ(refused.immediate, 42u);
    }
    Expect(to.receives(), 2, Status::kFlushed);
    ExpectDisconnected(to, DisconnectCause::kBroken);  // nothing else is reported before it
    ExpectBroken(from);
  }
}

// The completion describes the request even if the request never reached the device.
TEST_F(OneSidedTest, AWriteWithImmediateFailsAsOne) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ConnectWithImmediate(from, to);
  from.DestroyRegion();
  for (const auto& [id, status] :
       {std::pair{1u, Status::kLocalProtection}, {2u, Status::kFlushed}}) {
    ASSERT_EQ(from.Write(id, 0, 8, to, 0, kImmediate, 5), PostResult::kOk);
    const Completion failed = Expect(from.sends(), id, status);
    EXPECT_EQ(failed.opcode, Opcode::kWrite);
    EXPECT_TRUE(failed.has_immediate);
    EXPECT_EQ(failed.immediate, 5u);
  }
}

TEST_F(OneSidedTest, AWriteWithImmediateWaitsForItsReceive) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ConnectWithImmediate(from, to);
  ASSERT_EQ(from.Write(1, 0, 100, to, 64, kImmediate | kConfirm, 5), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 10), PostResult::kOk);
  Settle();
  EXPECT_TRUE(to.receives().got().empty());
  ASSERT_EQ(to.Receive(3, 0, 64), PostResult::kOk);
  ASSERT_EQ(to.Receive(4, 0, 64), PostResult::kOk);
  EXPECT_EQ(Expect(to.receives(), 3).opcode, Opcode::kReceiveWrite);
  EXPECT_EQ(Expect(to.receives(), 4).opcode, Opcode::kReceive);
  Expect(from.sends(), 1);
  Expect(from.sends(), 2);
}

TEST_F(OneSidedTest, ReadsFetch) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  int seed = 0;
  for (size_t size : kSizes) {
    std::fill(from.memory().begin(), from.memory().end(), 0xee);
    to.Put(77, Pattern(size, ++seed));
    ASSERT_EQ(from.Read(seed, 13, size, to, 77), PostResult::kOk);
    const Completion done = Expect(from.sends(), seed);
    EXPECT_EQ(done.opcode, Opcode::kRead);
    EXPECT_EQ(done.length, size);
    EXPECT_TRUE(from.Get(13, size) == Pattern(size, seed)) << size;
    EXPECT_EQ(from.memory()[12], 0xee);
    EXPECT_EQ(from.memory()[13 + size], 0xee);
  }
}

TEST_F(OneSidedTest, MoreReadsArePostedThanMayBeOutstanding) {
  EndOptions options = Large();
  options.max_reads_out = 2;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  constexpr int kReads = 40;
  to.Put(0, Pattern(kReads * 20000, 1));
  for (int i = 0; i < kReads; ++i) {
    const size_t length = i % 2 ? 20000 : 500;
    ASSERT_EQ(from.Read(i, i * 20000, length, to, i * 20000), PostResult::kOk);
  }
  for (int i = 0; i < kReads; ++i) {
    const size_t length = i % 2 ? 20000 : 500;
    Expect(from.sends(), i);
    EXPECT_TRUE(from.Get(i * 20000, length) == to.Get(i * 20000, length)) << i;
  }
}

TEST_F(OneSidedTest, ReadsAndOthersCompleteInPostingOrder) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(from.Read(3 * i, 0, 30000, to, 1000), PostResult::kOk);
    ASSERT_EQ(from.Send(3 * i + 1, 30000, 8), PostResult::kOk);
    ASSERT_EQ(from.Write(3 * i + 2, 30000, 8, to, 100), PostResult::kOk);
  }
  for (int i = 0; i < 30; ++i) Expect(from.sends(), i);
}

// Even though the send after the read takes no time.
TEST_F(OneSidedTest, AReadIsThereBeforeItsCompletion) {
  constexpr size_t kMost = 1 << 20;
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  for (int round = 1; round <= 120; ++round) {
    const size_t size = kMost >> (round % 18);
    to.Put(0, Pattern(size, round));
    ASSERT_EQ(to.Receive(1, kMost, 8), PostResult::kOk);
    ASSERT_EQ(from.Read(2, 0, size, to, 0), PostResult::kOk);
    ASSERT_EQ(from.Send(3, kMost, 8), PostResult::kOk);
    Expect(from.sends(), 2);
    EXPECT_TRUE(from.Get(0, size) == Pattern(size, round)) << round;
    Expect(from.sends(), 3);
    Expect(to.receives(), 1);
  }
}

// Without the fence the send would take the bytes that were there before the read.
TEST_F(OneSidedTest, AFencedRequestSeesWhatEarlierReadsBrought) {
  End& from = NewEnd(a(), Large());
  End& to = NewEnd(b(), Large());
  Connect(from, to);
  for (size_t size : {64, 4096, 200000}) {
    std::fill(from.memory().begin(), from.memory().end(), 0);
    to.Put(0, Pattern(size, 3));
    ASSERT_EQ(to.Receive(1, 1 << 20, size), PostResult::kOk);
    ASSERT_EQ(from.Read(2, 0, size, to, 0), PostResult::kOk);
    ASSERT_EQ(from.Send(3, 0, size, kFence), PostResult::kOk);
    ASSERT_EQ(from.Write(4, 0, size, to, 2 << 20, kFence | kConfirm), PostResult::kOk);
    ASSERT_EQ(from.Read(5, 1 << 20, size, to, 2 << 20, kFence), PostResult::kOk);
    Expect(to.receives(), 1);
    EXPECT_TRUE(to.Get(1 << 20, size) == Pattern(size, 3)) << size;
    for (int id : {2, 3, 4, 5}) Expect(from.sends(), id);
    EXPECT_TRUE(to.Get(2 << 20, size) == Pattern(size, 3)) << size;
    EXPECT_TRUE(from.Get(1 << 20, size) == Pattern(size, 3)) << size;
  }
}

// A plain send is done as soon as it has left, but it completes after the older requests, and its
// status is decided only then, however the completions are polled.
TEST_F(OneSidedTest, WhatLeftBehindAReadThatFailsHereIsFlushed) {
  for (const bool one_queue : {true, false}) {
    for (const bool at_once : {true, false}) {
      SCOPED_TRACE(testing::Message() << one_queue << at_once);
      Inbox inbox(a());
      EndOptions options;
      if (one_queue) options.shared_inbox = &inbox;
      End& from = NewEnd(a(), options);
      End& to = NewEnd(b());
      Forget(from);
      Connect(from, to);
      for (int i = 0; i < 2; ++i) ASSERT_EQ(to.Receive(i, 0, 100), PostResult::kOk);
      const Segment wrong = {from.Address(0), 0, 100};
      ASSERT_EQ(from.ReadInto(wrong, 0, to, 0), PostResult::kOk);
      ASSERT_EQ(from.Send(1, 0, 100), PostResult::kOk);
      ASSERT_EQ(from.Send(2, 0, 100, kSuppress), PostResult::kOk);

      Completion out[3];
      int got = 0;
      const auto take = [&] {
        got += from.sends().queue().Poll(out + got, at_once ? 3 - got : 1);
        return got != 0;
      };
      ASSERT_TRUE(Run(take));
      EXPECT_TRUE(from.pair().Ended());
      ExpectBroken(from);
      ASSERT_TRUE(Run([&] { return take() && got == 3; })) << got;
      for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(out[i].id, i);
        EXPECT_EQ(out[i].status, i == 0 ? Status::kLocalProtection : Status::kFlushed) << i;
      }
      from.DestroyPair();  // before the inbox
    }
  }
}

TEST_F(OneSidedTest, AHeldMessageDoesNotHoldReads) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(from.Send(1, 0, 100, kConfirm), PostResult::kOk);  // finds no receive
  Settle();
  // The side that holds the message reads from its peer, whose response must overtake the message.
  from.Put(500, Pattern(300, 8));
  ASSERT_EQ(to.Read(2, 0, 300, from, 500), PostResult::kOk);
  Expect(to.sends(), 2);
  EXPECT_EQ(to.Get(0, 300), Pattern(300, 8));
}

TEST_F(OneSidedTest, SegmentsOfWritesAndReads) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  from.Put(0, Pattern(100, 1));
  from.Put(1000, Pattern(200, 2));
  const Segment segments[] = {from.At(0, 100), from.At(1000, 200)};
  SendRequest request;
  request.id = 1;
  request.opcode = Opcode::kWrite;
  request.flags = kConfirm;
  request.segments = segments;
  request.remote_address = to.Address(50);
  request.remote_key = to.region().key();
  to.Agree();
  ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  Expect(from.sends(), 1);
  EXPECT_EQ(to.Get(50, 100), Pattern(100, 1));
  EXPECT_EQ(to.Get(150, 200), Pattern(200, 2));

  to.Put(50, Pattern(300, 3));
  request.id = 2;
  request.opcode = Opcode::kRead;
  request.flags = 0;
  to.Agree();
  ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  EXPECT_EQ(Expect(from.sends(), 2).length, 300u);
  const Bytes all = Pattern(300, 3);
  EXPECT_EQ(from.Get(0, 100), Bytes(all.begin(), all.begin() + 100));
  EXPECT_EQ(from.Get(1000, 200), Bytes(all.begin() + 100, all.end()));
}

TEST_F(OneSidedTest, BothSidesAtOnce) {
  End& left = NewEnd(a(), Large());
  End& right = NewEnd(b(), Large());
  Connect(left, right);
  constexpr size_t kPiece = 300000;
  left.Put(0, Pattern(kPiece, 1));
  right.Put(0, Pattern(kPiece, 2));
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(left.Write(2 * i, 0, kPiece, right, 1 << 20), PostResult::kOk);
    ASSERT_EQ(right.Write(2 * i, 0, kPiece, left, 1 << 20), PostResult::kOk);
    ASSERT_EQ(left.Read(2 * i + 1, 2 << 20, kPiece, right, 0), PostResult::kOk);
    ASSERT_EQ(right.Read(2 * i + 1, 2 << 20, kPiece, left, 0), PostResult::kOk);
  }
  for (int i = 0; i < 10; ++i) {
    Expect(left.sends(), i);
    Expect(right.sends(), i);
  }
  EXPECT_TRUE(left.Get(2 << 20, kPiece) == Pattern(kPiece, 2));
  EXPECT_TRUE(right.Get(2 << 20, kPiece) == Pattern(kPiece, 1));
  // A read is answered only after the earlier writes of the reading side were placed.
  ASSERT_EQ(left.Read(20, 0, 1, right, 0), PostResult::kOk);
  ASSERT_EQ(right.Read(20, 0, 1, left, 0), PostResult::kOk);
  Expect(left.sends(), 20);
  Expect(right.sends(), 20);
  EXPECT_TRUE(left.Get(1 << 20, kPiece) == Pattern(kPiece, 2));
  EXPECT_TRUE(right.Get(1 << 20, kPiece) == Pattern(kPiece, 1));
}

}  // namespace
}  // namespace viaduct::verbs
