// The end of connections: graceful, abrupt, flushed; and reuse of the pair.
#include <vector>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class DisconnectTest : public DeviceTest {
 protected:
  DisconnectTest() : active_(NewEnd(a())), passive_(NewEnd(b())) {}
  void ExpectAllFlushed(Inbox& inbox, uint64_t first, int count) {
    for (int i = 0; i < count; ++i) Expect(inbox, first + i, Status::kFlushed);
  }

  End& active_;
  End& passive_;
};

TEST_F(DisconnectTest, GracefullyFromEitherSide) {
  for (bool from_active : {true, false}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    from_active ? Connect(from, to) : Connect(to, from);
    from.pair().Disconnect(DisconnectMode::kGraceful);
    ExpectDisconnected(from, DisconnectCause::kLocal);
    ExpectDisconnected(to, DisconnectCause::kPeer);
    Settle();
    EXPECT_EQ(from.events().count(), 0u) << "once per connection";
    EXPECT_EQ(to.events().count(), 0u) << "once per connection";
  }
}

TEST_F(DisconnectTest, GracefullyFromBothSidesAtOnce) {
  Connect(active_, passive_);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  passive_.pair().Disconnect(DisconnectMode::kGraceful);
  for (End* end : {&active_, &passive_}) {
    const Event event = AwaitEvent(*end);
    EXPECT_EQ(event.kind, Event::kDisconnected);
    EXPECT_NE(event.cause, DisconnectCause::kBroken);
  }
  Settle();
  EXPECT_EQ(active_.events().count() + passive_.events().count(), 0u);
}

TEST_F(DisconnectTest, GracefulTwiceIsOnce) {
  Connect(active_, passive_);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(active_, DisconnectCause::kLocal);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  Settle();
  EXPECT_EQ(active_.events().count(), 0u);
}

TEST_F(DisconnectTest, GracefullyAfterPostedRequestsAreDone) {
  Connect(active_, passive_);
  active_.Put(0, Pattern(8192, 1));
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(active_.Send(i, i * 1024, 1024, kConfirm), PostResult::kOk);
  }
  ASSERT_EQ(active_.Read(8, 16384, 512, passive_, 32768), PostResult::kOk);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  // The peer has held the messages until now.
  for (int i = 0; i < 8; ++i) ASSERT_EQ(passive_.Receive(100 + i, i * 1024, 1024), PostResult::kOk);
  ASSERT_EQ(passive_.Receive(108, 0, 0), PostResult::kOk);
  for (int i = 0; i < 8; ++i) Expect(passive_.receives(), 100 + i);
  EXPECT_EQ(passive_.Get(0, 8192), Pattern(8192, 1));
  for (int i = 0; i < 9; ++i) Expect(active_.sends(), i);
  ExpectDisconnected(active_, DisconnectCause::kLocal);
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  Expect(passive_.receives(), 108, Status::kFlushed);
}

// The peer has sent all its messages and disconnected before the program posts its receives.
TEST_F(DisconnectTest, HeldMessagesComeBeforeTheEnd) {
  constexpr int kMessages = 5;
  for (size_t size : {8, 16384}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    Connect(from, to);
    from.Put(0, Pattern(size, 3));
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(from.Send(i, 0, size), PostResult::kOk);
    from.pair().Disconnect(DisconnectMode::kGraceful);
    Settle();
    EXPECT_EQ(to.events().count(), 0u) << "messages wait";
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(to.Receive(i, 0, size), PostResult::kOk);
      Expect(to.receives(), i);
      EXPECT_EQ(to.Get(0, size), Pattern(size, 3));
    }
    ExpectDisconnected(to, DisconnectCause::kPeer);
    for (int i = 0; i < kMessages; ++i) Expect(from.sends(), i);
    ExpectDisconnected(from, DisconnectCause::kLocal);
  }
}

TEST_F(DisconnectTest, AbruptlyFlushesBeforeItReturns) {
  Connect(active_, passive_);
  // None of these can complete: the peer has no receive, and sends with kConfirm wait for one.
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(active_.Send(i, 0, 100, kConfirm), PostResult::kOk);
    ASSERT_EQ(active_.Receive(10 + i, 0, 100), PostResult::kOk);
  }
  active_.pair().Disconnect(DisconnectMode::kAbrupt);
  EXPECT_TRUE(active_.pair().SendIdle());
  EXPECT_EQ(active_.pair().open_receives(), 0u);
  active_.Poll();
  ASSERT_EQ(active_.sends().got().size(), 3u);
  ASSERT_EQ(active_.receives().got().size(), 3u);
  ExpectAllFlushed(active_.sends(), 0, 3);
  ExpectAllFlushed(active_.receives(), 10, 3);
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  Settle();
  EXPECT_EQ(active_.events().count(), 0u) << "no sink call follows";
}

// A send that needs no confirmation is done as soon as it has left, but it completes after the
// older sends, and its status is decided only then.
TEST_F(DisconnectTest, NothingSucceedsBehindWhatIsFlushed) {
  for (const bool suppressed : {false, true}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    Connect(from, to);
    ASSERT_EQ(from.Send(0, 0, 100, kConfirm), PostResult::kOk);  // for which there is no receive
    for (int i = 1; i < 4; ++i) {
      ASSERT_EQ(from.Send(i, 0, 100, suppressed ? kSuppress : 0), PostResult::kOk);
    }
    from.pair().Disconnect(DisconnectMode::kAbrupt);
    from.Poll();
    ASSERT_EQ(from.sends().got().size(), 4u);
    for (uint64_t i = 0; i < 4; ++i) {
      const Completion completion = Await(from.sends());
      EXPECT_EQ(completion.id, i);
      // On a device that does not hold messages, the peer may have refused any of them.
      const bool refused = !device().holds_messages() && completion.status == Status::kTransport;
      EXPECT_TRUE(completion.status == Status::kFlushed || refused)
          << static_cast<int>(completion.status);
    }
    ExpectDisconnected(to, DisconnectCause::kPeer);
  }
}

TEST_F(DisconnectTest, WhatWasCompletedBeforeAbruptStillArrives) {
  for (size_t size : {8, 4096, 60000}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    Connect(from, to);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(i, 0, size), PostResult::kOk);
    from.Put(0, Pattern(size, 9));
    for (int i = 0; i < 4; ++i) ASSERT_EQ(from.Send(i, 0, size), PostResult::kOk);
    for (int i = 0; i < 4; ++i) Expect(from.sends(), i);
    from.pair().Disconnect(DisconnectMode::kAbrupt);
    for (int i = 0; i < 4; ++i) Expect(to.receives(), i);
    EXPECT_EQ(to.Get(0, size), Pattern(size, 9));
    ExpectDisconnected(to, DisconnectCause::kPeer);
  }
}

TEST_F(DisconnectTest, WhatArrivedBeforeAbruptIsASuccess) {
  for (size_t size : {8, 4096, 60000}) {
    for (int round = 0; round < 5; ++round) {
      End& from = NewEnd(a());
      End& to = NewEnd(b());
      Connect(from, to);
      ASSERT_EQ(to.Receive(1, 0, size), PostResult::kOk);
      ASSERT_EQ(from.Send(2, 0, size), PostResult::kOk);
      Expect(to.receives(), 1);
      to.pair().Disconnect(DisconnectMode::kAbrupt);
      Expect(from.sends(), 2);
      ExpectDisconnected(from, DisconnectCause::kPeer);
    }
  }
}

// The same for a send that succeeds only with the peer's confirmation: this must arrive before the
// end of the connection.
TEST_F(DisconnectTest, WhatWasReceivedBeforeAbruptIsConfirmed) {
  for (size_t size : {8, 4096, 60000}) {
    for (int round = 0; round < 5; ++round) {
      End& from = NewEnd(a());
      End& to = NewEnd(b());
      Connect(from, to);
      ASSERT_EQ(to.Receive(1, 0, size), PostResult::kOk);
      ASSERT_EQ(from.Send(2, 0, size, kConfirm), PostResult::kOk);
      Expect(to.receives(), 1);
      to.pair().Disconnect(DisconnectMode::kAbrupt);
      Expect(from.sends(), 2);
      ExpectDisconnected(from, DisconnectCause::kPeer);
    }
  }
}

TEST_F(DisconnectTest, SuccessesArePollableBeforeOnDisconnected) {
  Connect(active_, passive_);
  constexpr int kMessages = 20;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(passive_.Receive(i, 0, 64), PostResult::kOk);
  }
  ASSERT_EQ(passive_.Receive(kMessages, 0, 64), PostResult::kOk);
  std::vector<Completion> in_sink;
  passive_.events().hook = [&](const Event& event) {
    if (event.kind != Event::kDisconnected) return;
    in_sink.resize(64);
    in_sink.resize(passive_.receives().queue().Poll(in_sink.data(), 64));
  };
  Forget(passive_);  // only the sink polls
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(active_.Send(i, 0, 64), PostResult::kOk);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  DrainExecutors();  // the hook has returned
  ASSERT_GE(in_sink.size(), static_cast<size_t>(kMessages));
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(in_sink[i].id, static_cast<uint64_t>(i));
    EXPECT_EQ(in_sink[i].status, Status::kSuccess);
  }
  if (in_sink.size() == kMessages) {
    Expect(passive_.receives(), kMessages, Status::kFlushed);
  } else {
    EXPECT_EQ(in_sink[kMessages].status, Status::kFlushed) << "the flushed rest follows";
  }
}

TEST_F(DisconnectTest, FlushedRequestsComeInOrder) {
  Connect(active_, passive_);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(passive_.Receive(i, 0, 64), PostResult::kOk);
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  ExpectAllFlushed(passive_.receives(), 0, 30);
}

TEST_F(DisconnectTest, NoEffectInIdleAndError) {
  ASSERT_EQ(active_.Receive(1, 0, 64), PostResult::kOk);
  for (DisconnectMode mode : {DisconnectMode::kGraceful, DisconnectMode::kAbrupt}) {
    active_.pair().Disconnect(mode);
    Settle();
    EXPECT_EQ(active_.events().count(), 0u);
    EXPECT_TRUE(active_.receives().got().empty()) << "nothing is flushed in Idle";
  }
  active_.pair().Flush();
  Expect(active_.receives(), 1, Status::kFlushed);
  for (DisconnectMode mode : {DisconnectMode::kGraceful, DisconnectMode::kAbrupt}) {
    active_.pair().Disconnect(mode);
    Settle();
    EXPECT_EQ(active_.events().count(), 0u);
  }
}

TEST_F(DisconnectTest, PostingInIdleAndError) {
  ASSERT_EQ(active_.Send(1, 0, 64), PostResult::kOk);
  Expect(active_.sends(), 1, Status::kFlushed);
  ASSERT_EQ(active_.Receive(2, 0, 64), PostResult::kOk);
  Settle();
  EXPECT_TRUE(active_.receives().got().empty()) << "queued in Idle";
  active_.pair().Flush();
  Expect(active_.receives(), 2, Status::kFlushed);
  ASSERT_EQ(active_.Send(3, 0, 64), PostResult::kOk);
  ASSERT_EQ(active_.Receive(4, 0, 64), PostResult::kOk);
  Expect(active_.sends(), 3, Status::kFlushed);
  Expect(active_.receives(), 4, Status::kFlushed);
}

TEST_F(DisconnectTest, SendsWhileConnectingAreFlushed) {
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok());
  ASSERT_TRUE(Dial(active_, b(), (*listener)->port()).ok());
  ASSERT_EQ(active_.Send(1, 0, 64), PostResult::kOk);
  Expect(active_.sends(), 1, Status::kFlushed);
  active_.pair().Disconnect(DisconnectMode::kAbrupt);
}

TEST_F(DisconnectTest, FlushedCompletionsSurviveReset) {
  for (int i = 0; i < 5; ++i) ASSERT_EQ(active_.Receive(i, 0, 64), PostResult::kOk);
  active_.pair().Flush();
  active_.pair().Reset();
  ExpectAllFlushed(active_.receives(), 0, 5);
}

TEST_F(DisconnectTest, IdleTellsWhatIsPosted) {
  EXPECT_TRUE(active_.pair().SendIdle());
  EXPECT_EQ(active_.pair().open_receives(), 0u);
  Connect(active_, passive_);
  ASSERT_EQ(passive_.Receive(1, 0, 64), PostResult::kOk);
  EXPECT_NE(passive_.pair().open_receives(), 0u);
  ASSERT_EQ(active_.Read(1, 0, 16, passive_, 1024), PostResult::kOk);
  ASSERT_EQ(active_.Send(2, 1024, 16), PostResult::kOk);
  Expect(active_.sends(), 1);
  Expect(active_.sends(), 2);
  EXPECT_TRUE(active_.pair().SendIdle());
  Expect(passive_.receives(), 1);
  EXPECT_EQ(passive_.pair().open_receives(), 0u);
}

TEST_F(DisconnectTest, TheSamePairsConnectAgain) {
  for (int round = 0; round < 6; ++round) {
    // Every combination of who dials and who disconnects how.
    End& first = round % 2 == 0 ? active_ : passive_;
    End& second = round % 2 == 0 ? passive_ : active_;
    Connect(first, second);
    ASSERT_EQ(second.Receive(1, 0, 4096), PostResult::kOk);
    first.Put(8192, Pattern(4096, round));
    ASSERT_EQ(first.Send(2, 8192, 4096), PostResult::kOk);
    EXPECT_EQ(Expect(second.receives(), 1).length, 4096u);
    Expect(first.sends(), 2);
    EXPECT_EQ(second.Get(0, 4096), Pattern(4096, round));
    End& ender = round % 3 == 0 ? second : first;
    End& other = round % 3 == 0 ? first : second;
    const bool graceful = round < 3;
    ender.pair().Disconnect(graceful ? DisconnectMode::kGraceful : DisconnectMode::kAbrupt);
    if (graceful) ExpectDisconnected(ender, DisconnectCause::kLocal);
    ExpectDisconnected(other, DisconnectCause::kPeer);
    for (End* end : {&first, &second}) {
      end->pair().Reset();
      EXPECT_EQ(end->pair().local_port(), 0);
    }
  }
}

// Only the side that did not end the connection sees the end: the other side knows of it.
TEST_F(DisconnectTest, AnEndIsSeenUntilReset) {
  for (DisconnectMode mode : {DisconnectMode::kGraceful, DisconnectMode::kAbrupt}) {
    Connect(active_, passive_);
    EXPECT_FALSE(passive_.pair().Ended());
    active_.pair().Disconnect(mode);
    ExpectDisconnected(passive_, DisconnectCause::kPeer);
    if (mode == DisconnectMode::kGraceful) ExpectDisconnected(active_, DisconnectCause::kLocal);
    EXPECT_TRUE(passive_.pair().Ended());
    EXPECT_FALSE(active_.pair().Ended());
    for (End* end : {&active_, &passive_}) {
      end->pair().Reset();
      EXPECT_FALSE(end->pair().Ended());
    }
  }
}

TEST_F(DisconnectTest, ReceivesPostedAfterResetBelongToTheNextConnection) {
  Connect(active_, passive_);
  active_.pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  active_.pair().Reset();
  passive_.pair().Reset();
  ASSERT_EQ(passive_.Receive(5, 0, 64), PostResult::kOk);
  Connect(active_, passive_);
  ASSERT_EQ(active_.Send(6, 0, 64), PostResult::kOk);
  Expect(passive_.receives(), 5);
}

TEST_F(DisconnectTest, WhatFailedBeforeResetFailsNothingOfTheNextConnection) {
  Connect(active_, passive_);
  Forget(active_);  // no completion is polled before the end
  const Segment wrong = {active_.Address(0), 0, 100};
  ASSERT_EQ(active_.ReadInto(wrong, 1, passive_, 0), PostResult::kOk);
  ExpectDisconnected(active_, DisconnectCause::kBroken);
  EXPECT_EQ(AwaitEvent(passive_).kind, Event::kDisconnected);
  active_.pair().Reset();
  passive_.pair().Reset();
  Connect(active_, passive_);
  ASSERT_EQ(passive_.Receive(2, 0, 64), PostResult::kOk);
  ASSERT_EQ(active_.Send(3, 0, 64), PostResult::kOk);
  Expect(passive_.receives(), 2);
  passive_.pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(active_, DisconnectCause::kPeer);
  Expect(active_.sends(), 1, Status::kLocalProtection);
  Expect(active_.sends(), 3);
}

TEST_F(DisconnectTest, DestructionTellsThePeer) {
  Connect(active_, passive_);
  active_.DestroyPair();
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  EXPECT_EQ(active_.events().count(), 0u);
}

TEST_F(DisconnectTest, AHeldMessageDoesNotHoldTheDisconnect) {
  Connect(active_, passive_);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(active_.Send(i, 0, 4096, kConfirm), PostResult::kOk);
  Settle();
  passive_.pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(passive_, DisconnectCause::kLocal);
  ExpectDisconnected(active_, DisconnectCause::kPeer);
  ExpectAllFlushed(active_.sends(), 0, 10);
}

TEST_F(DisconnectTest, AbruptInsideASink) {
  Connect(active_, passive_);
  ASSERT_EQ(passive_.Receive(1, 0, 64), PostResult::kOk);
  passive_.events().hook = [&](const Event&) {
    passive_.pair().Disconnect(DisconnectMode::kAbrupt);
    passive_.pair().Reset();
  };
  active_.pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(passive_, DisconnectCause::kPeer);
  ExpectDisconnected(active_, DisconnectCause::kLocal);
  active_.pair().Reset();
  Settle();
  passive_.events().hook = nullptr;
  Connect(active_, passive_);
}

}  // namespace
}  // namespace viaduct::verbs
