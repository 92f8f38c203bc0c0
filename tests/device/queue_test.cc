// Completion queues: polling, waiting, waking, and sinks for those who neither poll nor wait.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kGenerous = 60'000 * kMillisecond;

// Takes everything out of its queue.
class TakingSink final : public CompletionSink {
 public:
  void OnCompletions(CompletionQueue& queue) override {
    ++calls;
    Completion completion;
    while (queue.Poll(&completion, 1) == 1) ++taken;
    if (on_call) on_call();
  }

  std::atomic<int> calls{0};
  std::atomic<int> taken{0};
  std::function<void()> on_call;
};

class QueueTest : public DeviceTest {
 protected:
  ~QueueTest() override { DestroyEnds(); }  // before the sink

  Deadline Generous() { return Deadline::After(a().executor(), kGenerous); }
  Deadline Soon() { return Deadline::After(a().executor(), 5 * kMillisecond); }

  // For tests in which a Wake before the call need not end the wait.
  static WaitResult Wait(CompletionQueue& queue, Deadline deadline) {
    return queue.Wait(deadline, queue.wakes());
  }

  TakingSink sink_;
  CompletionCounter counter_;
};

TEST_F(QueueTest, PollTakesNoMoreThanAsked) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(to);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, 8, kConfirm), PostResult::kOk);
  }
  for (int i = 0; i < 5; ++i) Expect(from.sends(), i);
  Completion out[8];
  for (Completion& completion : out) completion.id = 99;
  EXPECT_EQ(to.receives().queue().Poll(out, 0), 0);
  EXPECT_EQ(to.receives().queue().Poll(out, 2), 2);
  EXPECT_EQ(out[0].id, 0u);
  EXPECT_EQ(out[1].id, 1u);
  EXPECT_EQ(out[2].id, 99u);
  EXPECT_EQ(to.receives().queue().Poll(out, 8), 3);
  EXPECT_EQ(out[2].id, 4u);
  EXPECT_EQ(to.receives().queue().Poll(out, 8), 0);
}

// A program that takes both from one queue finds its message sent before it finds the answer, on
// the last of many pairs, too.
TEST_F(QueueTest, ASendIsFoundBeforeTheMessageThatAnswersIt) {
  constexpr int kPairs = 10;
  Inbox inbox(a());
  EndOptions options;
  options.shared_inbox = &inbox;
  options.max_sends = 64;
  options.max_receives = 16;
  for (int i = 0; i < kPairs; ++i) {
    SCOPED_TRACE(i);
    End& from = NewEnd(a(), options);
    End& to = NewEnd(b());
    Connect(from, to);
    Forget(from);
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Receive(2, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(3, 8, 8), PostResult::kOk);
    Expect(to.receives(), 1);
    ASSERT_EQ(to.Send(4, 0, 8, kConfirm), PostResult::kOk);
    Expect(to.sends(), 4);
    Completion found[3];
    ASSERT_EQ(inbox.queue().Poll(found, 3), 2);
    EXPECT_EQ(found[0].id, 3u);
    EXPECT_EQ(found[1].id, 2u);
  }
  DestroyEnds();  // before the inbox
}

// The other pairs keep their completions, whichever pairs go and whenever the queue was polled.
TEST_F(QueueTest, PairsThatGoLeaveTheOthersCompletions) {
  constexpr uint64_t kPairs = 24;
  Inbox inbox(a());
  std::vector<End*> ends;
  for (uint64_t id = 0; id < kPairs; ++id) {
    End& from = NewEnd(a(), {.shared_inbox = &inbox});
    End& to = NewEnd(b());
    Connect(from, to);
    ASSERT_EQ(from.Receive(id, 0, 8), PostResult::kOk);
    Forget(from);
    ends.push_back(&from);
  }
  for (End* end : ends) end->pair().Disconnect(DisconnectMode::kAbrupt);
  std::vector<bool> seen(kPairs);
  Completion completion;
  for (uint64_t gone = 0; gone < kPairs / 2; ++gone) {
    ends[gone * 7 % kPairs]->DestroyPair();
    // The last pairs go without a poll in between.
    if (gone < kPairs / 4 && inbox.queue().Poll(&completion, 1) == 1) seen[completion.id] = true;
  }
  while (inbox.queue().Poll(&completion, 1) == 1) {
    EXPECT_EQ(completion.status, Status::kFlushed);
    EXPECT_FALSE(seen[completion.id]) << completion.id;
    seen[completion.id] = true;
  }
  for (uint64_t kept = kPairs / 2; kept < kPairs; ++kept) {
    EXPECT_TRUE(seen[kept * 7 % kPairs]) << kept;
  }
  DestroyEnds();  // before the inbox
}

TEST_F(QueueTest, AnEmptyQueueTimesOut) {
  Inbox inbox(a());
  const Nanos start = a().executor().Now();
  EXPECT_EQ(Wait(inbox.queue(), Deadline::At(start + 5 * kMillisecond)), WaitResult::kTimedOut);
  EXPECT_GE(a().executor().Now(), start + 5 * kMillisecond);
  EXPECT_EQ(Wait(inbox.queue(), Deadline::At(0)), WaitResult::kTimedOut);
}

TEST_F(QueueTest, AFlushOfAnIdlePairCallsTheSink) {
  EndOptions options;
  options.sink = &counter_;
  End& end = NewEnd(a(), options);
  Forget(end);
  ASSERT_EQ(end.Receive(1, 0, 8), PostResult::kOk);
  end.pair().Flush();
  EXPECT_TRUE(Run([&] { return counter_.calls != 0; }));
  Expect(end.receives(), 1, Status::kFlushed);
}

TEST_F(QueueTest, AWakeIsKeptForWhoeverMeansToWait) {
  Inbox inbox(a());
  const uint32_t wakes = inbox.queue().wakes();
  inbox.queue().Wake();
  inbox.queue().Wake();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(inbox.queue().Wait(Generous(), wakes), WaitResult::kWoken) << i;
  }
  EXPECT_EQ(Wait(inbox.queue(), Soon()), WaitResult::kTimedOut) << "it was before";
}

TEST_F(QueueTest, AWakeFromTheExecutorEndsAWait) {
  Inbox inbox(a());
  const uint32_t wakes = inbox.queue().wakes();
  a().executor().RunAt(a().executor().Now() + 3 * kMillisecond, [&] { inbox.queue().Wake(); });
  EXPECT_EQ(inbox.queue().Wait(Generous(), wakes), WaitResult::kWoken);
  a().executor().Drain();
}

TEST_F(QueueTest, WaitEndsWithWhatIsThere) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8, kConfirm), PostResult::kOk);
  Expect(from.sends(), 2);
  EXPECT_EQ(Wait(to.receives().queue(), Generous()), WaitResult::kReady);
  Expect(to.receives(), 1);
}

// Waits as a program does: poll, wait, poll; each message is sent when the waiter may sleep.
TEST_F(QueueTest, WaitEndsWithWhatArrives) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(to);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
    // At once or after a while; the executor sends in the middle of the wait.
    a().executor().RunAt(a().executor().Now() + static_cast<Nanos>(i % 4) * kMillisecond,
                         [&from, i] { EXPECT_EQ(from.Send(i, 0, 8), PostResult::kOk); });
    const Deadline deadline = Generous();
    while (to.receives().got().empty()) {
      ASSERT_EQ(Wait(to.receives().queue(), deadline), WaitResult::kReady) << i;
      to.receives().Poll();
    }
    Expect(to.receives(), i);
    Expect(from.sends(), i);
  }
}

// Nothing is posted after the last send that would make anybody check for room.
TEST_F(QueueTest, RoomForTheLastSendEndsAWait) {
  static constexpr uint64_t kMost = 4096;
  static constexpr size_t kBytes = 60000;
  EndOptions options;
  options.max_sends = options.max_receives = kMost;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  Forget(from);
  Forget(to);
  uint64_t sent = 0, completed = 0;
  do {
    ASSERT_EQ(from.Send(sent++, 0, kBytes), PostResult::kOk);
    const Deadline deadline = Soon();
    while (from.sends().got().empty() &&
           Wait(from.sends().queue(), deadline) == WaitResult::kReady) {
      from.sends().Poll();
    }
    while (!from.sends().got().empty()) Expect(from.sends(), completed++);
  } while (completed == sent && sent < kMost);
  ASSERT_LT(completed, sent) << "there is always room";

  a().executor().RunAt(a().executor().Now() + 2 * kMillisecond, [&] {
    for (uint64_t i = 0; i < sent; ++i) EXPECT_EQ(to.Receive(i, 0, kBytes), PostResult::kOk);
  });
  const Deadline deadline = Generous();
  while (completed != sent) {
    ASSERT_EQ(Wait(from.sends().queue(), deadline), WaitResult::kReady);
    from.sends().Poll();
    while (!from.sends().got().empty()) Expect(from.sends(), completed++);
  }
  for (uint64_t i = 0; i < sent; ++i) Expect(to.receives(), i);
}

TEST_F(QueueTest, ASendCompletionEndsAWaitToo) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(from);
  Forget(to);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(from.Read(i, 0, 20000, to, 0), PostResult::kOk);
    const Deadline deadline = Generous();
    while (from.sends().got().empty()) {
      ASSERT_EQ(Wait(from.sends().queue(), deadline), WaitResult::kReady);
      from.sends().Poll();
    }
    Expect(from.sends(), i);
  }
}

TEST_F(QueueTest, AFlushEndsAWait) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  from.pair().Disconnect(DisconnectMode::kAbrupt);
  const Deadline deadline = Generous();
  while (to.receives().got().empty()) {
    ASSERT_EQ(Wait(to.receives().queue(), deadline), WaitResult::kReady);
    to.receives().Poll();
  }
  Expect(to.receives(), 1, Status::kFlushed);
}

TEST_F(QueueTest, OnCompletionsComesWhenNobodyPolls) {
  EndOptions options;
  options.sink = &sink_;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), options);
  Forget(to);
  Connect(from, to);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 5000), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, i % 2 ? 8 : 5000), PostResult::kOk);
    ASSERT_TRUE(device().RunUntil([&] { return sink_.taken == i + 1; })) << i;
    EXPECT_LE(sink_.calls, i + 1) << "only for new ones";
  }
  Settle();
  EXPECT_LE(sink_.calls, 10);
}

// The send that a consumer has polled and the receive that comes next may have the same number in
// the counts of their queues.
TEST_F(QueueTest, OnCompletionsComesAgainAfterAPoll) {
  Inbox inbox(b(), &counter_);
  EndOptions options;
  options.shared_inbox = &inbox;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), options);
  Forget(to);
  Connect(from, to);
  const auto take = [&](uint64_t id) {
    Completion completion;
    EXPECT_TRUE(device().RunUntil([&] {
      return counter_.calls != 0 && inbox.queue().Poll(&completion, 1) == 1;
    })) << id;
    EXPECT_EQ(completion.id, id);
    counter_.calls = 0;
  };
  for (uint64_t i = 0; i < 20; i += 2) {
    ASSERT_EQ(from.Receive(i, 8, 8), PostResult::kOk);
    ASSERT_EQ(to.Receive(i, 8, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, 8), PostResult::kOk);
    take(i);
    ASSERT_EQ(to.Send(i + 1, 0, 8), PostResult::kOk);
    take(i + 1);
  }
  DestroyEnds();
}

TEST_F(QueueTest, OnCompletionsComesForReadsAndFlushedRequests) {
  EndOptions options;
  options.sink = &sink_;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b());
  Forget(from);
  Forget(to);
  Connect(from, to);
  ASSERT_EQ(from.Read(1, 0, 3000, to, 0), PostResult::kOk);
  ASSERT_TRUE(device().RunUntil([&] { return sink_.taken == 1; }));
  ASSERT_EQ(from.Receive(2, 0, 8), PostResult::kOk);
  to.pair().Disconnect(DisconnectMode::kAbrupt);
  ASSERT_TRUE(device().RunUntil([&] { return sink_.taken == 2; }));
}

TEST_F(QueueTest, AnArmedQueueTellsItsSinkAlthoughSomebodyPolls) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());  // without a sink until it is armed
  Forget(to);
  Connect(from, to);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
    Completion completion;
    EXPECT_EQ(to.receives().queue().Poll(&completion, 1), 0);
    to.receives().queue().Arm(sink_);
    ASSERT_EQ(from.Send(i, 0, 8), PostResult::kOk);
    ASSERT_TRUE(device().RunUntil([&] { return sink_.taken == i + 1; })) << i;
  }
}

TEST_F(QueueTest, ArmTellsOfWhatIsThere) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Forget(to);
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
  ASSERT_EQ(from.Send(1, 0, 8, kConfirm), PostResult::kOk);
  Expect(from.sends(), 1);
  EXPECT_EQ(sink_.calls, 0);
  to.receives().queue().Arm(sink_);
  ASSERT_TRUE(device().RunUntil([&] { return sink_.taken == 1; }));
}

TEST_F(QueueTest, QuietRequestsAreMarkedSo) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ReceiveRequest quiet;
  quiet.id = 2;
  quiet.quiet = true;
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(to.pair().PostReceive(quiet), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 0, kQuiet), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 0), PostResult::kOk);
  EXPECT_TRUE(Expect(from.sends(), 3).quiet);
  EXPECT_FALSE(Expect(from.sends(), 4).quiet);
  EXPECT_FALSE(Expect(to.receives(), 1).quiet);
  EXPECT_TRUE(Expect(to.receives(), 2).quiet);
}

TEST_F(QueueTest, ASinkMayDestroyThePairsOfItsQueue) {
  EndOptions options;
  options.sink = &sink_;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), options);
  Forget(to);
  Connect(from, to);
  sink_.on_call = [&to] { to.DestroyPair(); };
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  ASSERT_TRUE(device().RunUntil([&] { return sink_.taken != 0; }));
  ExpectDisconnected(from, DisconnectCause::kPeer);
  b().executor().Drain();
}

TEST_F(QueueTest, AllWaitersAreWoken) {
  if (!device().threads()) GTEST_SKIP() << "needs threads";
  constexpr int kWaiters = 3;
  Inbox inbox(a());
  std::atomic<int> ready{0}, woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&] {
      const uint32_t wakes = inbox.queue().wakes();
      ++ready;
      if (inbox.queue().Wait(Generous(), wakes) == WaitResult::kWoken) ++woken;
    });
  }
  while (ready < kWaiters) std::this_thread::yield();
  inbox.queue().Wake();  // some threads sleep, others are about to
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, kWaiters);
}

TEST_F(QueueTest, SeveralThreadsPollAndWait) {
  if (!device().threads()) GTEST_SKIP() << "needs threads";
  constexpr int kMessages = 300;
  EndOptions options;
  options.max_sends = options.max_receives = kMessages;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
  std::vector<std::atomic<int>> seen(kMessages);
  std::atomic<int> total{0};
  std::vector<std::thread> threads;
  CompletionQueue& queue = to.receives().queue();
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (true) {
        const uint32_t wakes = queue.wakes();
        if (total == kMessages) return;
        Completion completion;
        if (queue.Poll(&completion, 1) == 0) {
          if (queue.Wait(Generous(), wakes) == WaitResult::kTimedOut) return;
          continue;
        }
        ++seen[completion.id];
        if (++total == kMessages) queue.Wake();
      }
    });
  }
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(from.Send(i, 0, 64), PostResult::kOk);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kMessages; ++i) EXPECT_EQ(seen[i], 1) << i;
}

TEST_F(QueueTest, ThreadsSendOverTheSamePair) {
  if (!device().threads()) GTEST_SKIP() << "needs threads";
  constexpr int kEach = 200;
  EndOptions options;
  options.max_sends = options.max_receives = 4 * kEach;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  for (int i = 0; i < 2 * kEach; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) EXPECT_EQ(from.Send(t * kEach + i, 0, 8), PostResult::kOk);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2 * kEach; ++i) Expect(to.receives(), i);
  uint64_t next[2] = {0, kEach};  // each thread's own sends stay in order
  for (int i = 0; i < 2 * kEach; ++i) {
    const Completion completion = Await(from.sends());
    ASSERT_LT(completion.id, static_cast<uint64_t>(2 * kEach));
    uint64_t& expected = next[completion.id / kEach];
    EXPECT_EQ(completion.id, expected++);
  }
}

TEST_F(QueueTest, ContextsTellTheirLimits) {
  for (Context* context : {&a(), &b()}) {
    const DeviceAttributes& attributes = context->attributes();
    EXPECT_FALSE(attributes.device.empty());
    EXPECT_GE(attributes.max_queue_pairs, 64u);
    EXPECT_GE(attributes.max_requests_per_queue, 1024u);
    EXPECT_GE(attributes.max_segments, 4u);
    EXPECT_GE(attributes.max_reads_in, 1u);
    EXPECT_GE(attributes.max_reads_out, 1u);
    EXPECT_GE(attributes.max_regions, 1024u);
    EXPECT_GE(attributes.max_message_bytes, 1u << 20);
    EXPECT_GE(attributes.max_private_data, 56u);
  }
}

TEST_F(QueueTest, LimitsOfTheContextHold) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const uint64_t limit = a().attributes().max_message_bytes;
  if (limit >= 0xffffffffu) GTEST_SKIP() << "no request can be longer";
  // The length is checked before the memory.
  std::vector<Segment> segments(
      2, Segment{from.Address(0), from.region().key(), static_cast<uint32_t>(limit / 2 + 1)});
  ASSERT_EQ(from.Send(1, segments), PostResult::kOk);
  Expect(from.sends(), 1, Status::kLocalLength);
}

}  // namespace
}  // namespace viaduct::verbs
