// Requests that fail alone: NoReceive::kDrop, verdicts, suppressed completions.
#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class DropTest : public DeviceTest {
 protected:
  static EndOptions Dropping() {
    EndOptions options;
    options.no_receive = NoReceive::kDrop;
    return options;
  }
  static PostResult ReceiveWithVerdict(End& end, uint64_t id, Status verdict) {
    ReceiveRequest request;
    request.id = id;
    request.verdict = verdict;
    return end.pair().PostReceive(request);
  }
};

TEST_F(DropTest, NoReceiveDropsAndReports) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  uint64_t id = 0;
  for (size_t size : {0, 8, 5000, 60000}) {
    ASSERT_EQ(from.Send(++id, 0, size), PostResult::kOk);
    Expect(from.sends(), id);
    EXPECT_EQ(AwaitEvent(to).kind, Event::kDropped) << size;
    // The next one finds a receive.
    from.Put(0, Pattern(size, id));
    ASSERT_EQ(to.Receive(id, 0, 60000), PostResult::kOk);
    ASSERT_EQ(from.Send(++id, 0, size), PostResult::kOk);
    EXPECT_EQ(Expect(to.receives(), id - 1).length, size);
    Expect(from.sends(), id);
    EXPECT_TRUE(to.Get(0, size) == Pattern(size, id - 1));
  }
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

TEST_F(DropTest, UnderDropAMessageThatIsTooLongFailsItsReceiveOnly) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  ConnectWithImmediate(from, to);
  for (size_t size : {9, 57, 5000, 60000}) {
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(3, 0, size, kImmediate, 7), PostResult::kOk);
    ASSERT_EQ(from.Send(4, 0, 8), PostResult::kOk);
    const Completion failed = Expect(to.receives(), 1, Status::kLocalLength);
    EXPECT_EQ(failed.length, 0u);
    EXPECT_FALSE(failed.has_immediate);
    EXPECT_EQ(Expect(to.receives(), 2).length, 8u);
    Expect(from.sends(), 3);
    Expect(from.sends(), 4);
  }
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

TEST_F(DropTest, UnderDropARequestThatFailsHereFailsAlone) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(to.Receive(i, 0, 5000), PostResult::kOk);
  const Segment wrong = {from.Address(0), 0, 1};
  ASSERT_EQ(from.Send(0, 0, 5000), PostResult::kOk);
  ASSERT_EQ(from.Send(1, absl::MakeConstSpan(&wrong, 1)), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(from.sends(), 0);
  Expect(from.sends(), 1, Status::kLocalProtection);
  Expect(from.sends(), 2);
  EXPECT_EQ(Expect(to.receives(), 0).length, 5000u);
  EXPECT_EQ(Expect(to.receives(), 1).length, 8u);
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

// A longer send fails before it leaves, because it would break the connection.
TEST_F(DropTest, UnderDropASendIsNoLongerThanAnRdmaDeviceReceives) {
  EndOptions large = Dropping();
  large.memory = 4 * kMaxDropBytes;  // the second half for the write
  End& from = NewEnd(a(), large);
  End& to = NewEnd(b(), large);
  ConnectWithImmediate(from, to);
  const Status longer = device().limits_drops() ? Status::kLocalLength : Status::kSuccess;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(i, 0, 2 * kMaxDropBytes), PostResult::kOk);
  ASSERT_EQ(from.Send(0, 0, kMaxDropBytes), PostResult::kOk);
  ASSERT_EQ(from.Send(1, 0, kMaxDropBytes + 1), PostResult::kOk);
  const Segment two[] = {from.At(0, kMaxDropBytes), from.At(kMaxDropBytes, 1)};
  ASSERT_EQ(from.Send(2, two), PostResult::kOk);
  ASSERT_EQ(from.Write(3, 0, kMaxDropBytes + 1, to, 2 * kMaxDropBytes), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 8), PostResult::kOk);
  EXPECT_EQ(Expect(to.receives(), 0).length, kMaxDropBytes);
  if (longer == Status::kSuccess) {
    for (int i = 1; i <= 2; ++i) EXPECT_EQ(Expect(to.receives(), i).length, kMaxDropBytes + 1);
  }
  EXPECT_EQ(Await(to.receives()).length, 8u);
  Expect(from.sends(), 0);
  for (int i = 1; i <= 2; ++i) Expect(from.sends(), i, longer);
  for (int i = 3; i <= 4; ++i) Expect(from.sends(), i);
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

TEST_F(DropTest, UnderDropAReceiveWithWrongMemoryFailsAlone) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  for (size_t size : {8, 5000}) {
    const Segment wrong = {to.Address(0), 0, static_cast<uint32_t>(size)};
    ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&wrong, 1)), PostResult::kOk);
    ASSERT_EQ(to.Receive(2, 0, size), PostResult::kOk);
    ASSERT_EQ(from.Send(3, 0, size), PostResult::kOk);
    ASSERT_EQ(from.Send(4, 0, size), PostResult::kOk);
    Expect(to.receives(), 1, Status::kLocalProtection);
    Expect(to.receives(), 2);
    Expect(from.sends(), 3);
    Expect(from.sends(), 4);
  }
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

TEST_F(DropTest, ARefusedWriteUnderDropIsReportedAndNothingBreaks) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  const Bytes before = to.Get(100, 2000);
  from.Put(0, Pattern(2000, 1));
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 2000, to.Address(100), to.region().key() ^ 0x550000, 0),
            PostResult::kOk);
  EXPECT_EQ(AwaitEvent(to).kind, Event::kRefusedWrite);
  EXPECT_EQ(Await(from.sends()).id, 1u);
  ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  Expect(to.receives(), 2);
  Expect(from.sends(), 3);
  EXPECT_EQ(to.Get(100, 2000), before);
}

// ------------------------------------------------------------------------------------ verdicts

TEST_F(DropTest, AVerdictComesInItsTurnAndBreaks) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(from.Send(i, 0, 8, kConfirm), PostResult::kOk);
  SendRequest request;
  request.id = 2;
  request.verdict = Status::kLocalLength;
  ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  for (int i = 0; i < 2; ++i) Expect(from.sends(), i);
  Expect(from.sends(), 2, Status::kLocalLength);
  Expect(from.sends(), 3, Status::kFlushed);
  ExpectBroken(from);
  for (int i = 0; i < 2; ++i) Expect(to.receives(), i);
  for (int i = 2; i < 4; ++i) Expect(to.receives(), i, Status::kFlushed);
}

TEST_F(DropTest, UnderDropAVerdictHarmsNobodyElse) {
  End& from = NewEnd(a(), Dropping());
  End& to = NewEnd(b(), Dropping());
  Connect(from, to);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
  for (int i = 0; i < 3; ++i) {
    const Segment segment = from.At(0, 8);
    SendRequest request;
    request.id = i;
    request.segments = absl::MakeConstSpan(&segment, 1);
    if (i == 1) request.verdict = Status::kLocalProtection;
    ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  }
  Expect(from.sends(), 0);
  Expect(from.sends(), 1, Status::kLocalProtection);
  Expect(from.sends(), 2);
  for (int i = 0; i < 2; ++i) Expect(to.receives(), i);
  EXPECT_EQ(to.events().count() + from.events().count(), 0u);
}

TEST_F(DropTest, AVerdictOutsideAConnectionIsFlushed) {
  End& end = NewEnd(a());
  SendRequest request;
  request.id = 1;
  request.verdict = Status::kLocalProtection;
  ASSERT_EQ(end.pair().PostSend(request), PostResult::kOk);
  Expect(end.sends(), 1, Status::kFlushed);
}

// Even an empty message and a write, which place nothing in the receive, make it fail. What the
// peer sees of this is the subject of the next test.
TEST_F(DropTest, AReceiveWithAVerdictFailsByAnyMessage) {
  for (const bool write : {false, true}) {
    for (size_t size : {0, 8, 5000}) {
      SCOPED_TRACE(size);
      End& from = NewEnd(a());
      End& to = NewEnd(b());
      ConnectWithImmediate(from, to);
      ASSERT_EQ(ReceiveWithVerdict(to, 1, Status::kLocalLength), PostResult::kOk);
      ASSERT_EQ(to.Receive(2, 0, 5000), PostResult::kOk);
      ASSERT_EQ(write ? from.Write(3, 0, size, to, 0, kImmediate, 7) : from.Send(3, 0, size),
                PostResult::kOk);
      const Completion failed = Expect(to.receives(), 1, Status::kLocalLength);
      EXPECT_EQ(failed.opcode == Opcode::kReceiveWrite, write);
      Expect(to.receives(), 2, Status::kFlushed);
      ExpectBroken(to);
      EXPECT_EQ(AwaitEvent(from).kind, Event::kDisconnected);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(DropTest, ThePeerLearnsOfAReceiveWithAVerdict) {
  for (const bool write : {false, true}) {
    for (size_t size : {0, 8, 5000}) {
      SCOPED_TRACE(size);
      End& from = NewEnd(a());
      End& to = NewEnd(b());
      ConnectWithImmediate(from, to);
      ASSERT_EQ(to.Receive(1, 0, 5000), PostResult::kOk);
      ASSERT_EQ(ReceiveWithVerdict(to, 2, Status::kLocalProtection), PostResult::kOk);
      ASSERT_EQ(from.Send(3, 0, size, kConfirm), PostResult::kOk);
      ASSERT_EQ(write ? from.Write(4, 0, size, to, 0, kImmediate | kConfirm, 7)
                      : from.Send(4, 0, size, kConfirm | kImmediate, 7),
                PostResult::kOk);
      Expect(from.sends(), 3);
      Expect(from.sends(), 4, Status::kRemoteOperation);
      Expect(to.receives(), 1);
      Expect(to.receives(), 2, Status::kLocalProtection);
      ExpectBroken(from);
      ExpectBroken(to);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(DropTest, UnderDropAReceiveWithAVerdictFailsAlone) {
  for (const bool write : {false, true}) {
    End& from = NewEnd(a(), Dropping());
    End& to = NewEnd(b(), Dropping());
    ConnectWithImmediate(from, to);
    for (size_t size : {0, 8, 5000}) {
      SCOPED_TRACE(size);
      ASSERT_EQ(ReceiveWithVerdict(to, 1, Status::kLocalProtection), PostResult::kOk);
      ASSERT_EQ(to.Receive(2, 0, 5000), PostResult::kOk);
      for (uint64_t id : {3, 4}) {
        ASSERT_EQ(write ? from.Write(id, 0, size, to, 0, kImmediate, 7) : from.Send(id, 0, size),
                  PostResult::kOk);
      }
      Expect(to.receives(), 1, Status::kLocalProtection);
      EXPECT_EQ(Expect(to.receives(), 2).length, size);
      Expect(from.sends(), 3);
      Expect(from.sends(), 4);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(to.events().count() + from.events().count(), 0u);
  }
}

// Like any other receive, it stays posted until a message comes.
TEST_F(DropTest, AReceiveWithAVerdictMayBeFlushed) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ASSERT_EQ(ReceiveWithVerdict(to, 1, Status::kLocalLength), PostResult::kOk);
  Connect(from, to);
  from.pair().Disconnect(DisconnectMode::kGraceful);
  Expect(to.receives(), 1, Status::kFlushed);
}

TEST_F(DropTest, ASuppressedRequestThatFailsCompletes) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(
      from.PostTo(Opcode::kWrite, 1, 8, to.Address(0), to.region().key(), kSuppress | kConfirm),
      PostResult::kOk);
  ASSERT_EQ(from.PostTo(Opcode::kRead, 2, 8, 4096, 77, kSuppress), PostResult::kOk);
  Expect(from.sends(), 2, Status::kRemoteAccess);
}

}  // namespace
}  // namespace viaduct::verbs
