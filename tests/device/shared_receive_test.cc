// Shared receive queues: who gets which receive, waiting and in which order, limits, low watermark.
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/device/ends.h"
#include "verbs/base/pass_lock.h"

namespace viaduct::verbs {
namespace {

class CountingSink final : public SharedReceiveSink {
 public:
  void OnLowWatermark(SharedReceiveQueue&) override { ++count_; }
  int count() const { return count_.load(); }

 private:
  std::atomic<int> count_{0};
};

class SharedReceiveTest : public DeviceTest {
 protected:
  // Ends of `b` that share one queue, each connected with an end of `a`.
  void Make(int pairs, uint32_t max_receives, uint32_t max_segments = 1) {
    auto domain = b().CreateDomain(/*wildcard=*/false);
    ASSERT_TRUE(domain.ok());
    domain_ = *std::move(domain);
    SharedReceiveOptions options;
    options.domain = domain_.get();
    options.sink = &sink_;
    options.max_receives = max_receives;
    options.max_segments = max_segments;
    auto queue = b().CreateSharedReceiveQueue(options);
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
    for (int i = 0; i < pairs; ++i) AddPair();
  }
  void AddPair() {
    EndOptions options;
    options.memory = 200000;
    from_.push_back(&NewEnd(a(), options));
    options.domain = domain_.get();
    options.shared_receives = queue_.get();
    to_.push_back(&NewEnd(b(), options));
    Connect(*from_.back(), *to_.back());
  }
  void TearDown() override {
    DestroyEnds();
    queue_.reset();
  }
  // A receive into the memory of the first end.
  PostResult Post(uint64_t id, size_t offset, size_t length) {
    const Segment segment = to_[0]->At(offset, length);
    ReceiveRequest request;
    request.id = id;
    request.segments = absl::MakeConstSpan(&segment, 1);
    return queue_->PostReceive(request);
  }

  std::unique_ptr<ProtectionDomain> domain_;
  CountingSink sink_;
  std::unique_ptr<SharedReceiveQueue> queue_;
  std::vector<End*> from_;
  std::vector<End*> to_;
};

TEST_F(SharedReceiveTest, MessagesTakeReceivesInTheOrderOfArrival) {
  Make(3, 16);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(Post(100 + i, i * 1000, 1000), PostResult::kOk);
  EXPECT_EQ(queue_->available(), 6u);
  for (int i = 0; i < 6; ++i) {
    End& from = *from_[i % 3];
    from.Put(0, Pattern(300, i));
    ASSERT_EQ(from.Send(i, 0, 300), PostResult::kOk);
    const Completion received = Expect(to_[i % 3]->receives(), 100 + i);
    EXPECT_EQ(received.context, to_[i % 3]);
    EXPECT_EQ(received.length, 300u);
    EXPECT_EQ(to_[0]->Get(i * 1000, 300), Pattern(300, i));
    Expect(from.sends(), i);
  }
  EXPECT_EQ(queue_->available(), 0u);
  EXPECT_EQ(queue_->outstanding(), 0u);
}

TEST_F(SharedReceiveTest, AMessageWaitsForAReceive) {
  Make(3, 16);
  size_t at = 100000;
  for (End* from : from_) {
    ASSERT_EQ(from->Send(1, 0, 5000), PostResult::kOk);
    ASSERT_EQ(from->Write(2, 0, 10, *to_[0], at, 0), PostResult::kOk);
    at += 10;
  }
  Settle();
  for (End* to : to_) EXPECT_TRUE(to->receives().got().empty());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Post(i, i * 5000, 5000), PostResult::kOk);
  int sum = 0;
  for (End* to : to_) sum += static_cast<int>(Await(to->receives()).id);
  EXPECT_EQ(sum, 3);
}

TEST_F(SharedReceiveTest, AWriteWithImmediateTakesOne) {
  Make(1, 4);
  ASSERT_EQ(Post(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from_[0]->Write(2, 0, 100, *to_[0], 1000, kImmediate, 42), PostResult::kOk);
  const Completion received = Expect(to_[0]->receives(), 1);
  EXPECT_EQ(received.opcode, Opcode::kReceiveWrite);
  EXPECT_EQ(received.immediate, 42u);
}

TEST_F(SharedReceiveTest, SegmentsTravel) {
  Make(1, 4, 3);
  const Segment segments[] = {to_[0]->At(0, 10), to_[0]->At(100, 10), to_[0]->At(200, 100)};
  ReceiveRequest request;
  request.id = 1;
  request.segments = segments;
  ASSERT_EQ(queue_->PostReceive(request), PostResult::kOk);
  from_[0]->Put(0, Pattern(50, 1));
  ASSERT_EQ(from_[0]->Send(2, 0, 50), PostResult::kOk);
  Expect(to_[0]->receives(), 1);
  const Bytes all = Pattern(50, 1);
  EXPECT_EQ(to_[0]->Get(0, 10), Bytes(all.begin(), all.begin() + 10));
  EXPECT_EQ(to_[0]->Get(200, 30), Bytes(all.begin() + 20, all.end()));
  const Segment four[4] = {};
  request.segments = four;
  EXPECT_EQ(queue_->PostReceive(request), PostResult::kTooManySegments);
}

TEST_F(SharedReceiveTest, FullAndResized) {
  Make(1, 2);
  ASSERT_EQ(Post(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(Post(2, 0, 8), PostResult::kOk);
  EXPECT_EQ(Post(3, 0, 8), PostResult::kQueueFull);
  EXPECT_FALSE(queue_->Resize(1).ok());
  ASSERT_TRUE(queue_->Resize(100).ok());
  for (int i = 3; i <= 100; ++i) ASSERT_EQ(Post(i, 0, 8), PostResult::kOk);
  EXPECT_EQ(Post(101, 0, 8), PostResult::kQueueFull);
  for (int i = 1; i <= 100; ++i) {
    ASSERT_EQ(from_[0]->Send(i, 0, 8), PostResult::kOk);
    Expect(to_[0]->receives(), i);
    Expect(from_[0]->sends(), i);
  }
  EXPECT_TRUE(queue_->Resize(1).ok());
}

TEST_F(SharedReceiveTest, OneOfTheDeclaredLengthServesAPair) {
  Make(1, b().attributes().max_shared_receives);
  ASSERT_EQ(Post(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from_[0]->Send(2, 0, 8), PostResult::kOk);
  Expect(from_[0]->sends(), 2);
  Expect(to_[0]->receives(), 1);
}

// More messages come than one pair may take before its completions are polled.
TEST_F(SharedReceiveTest, NobodyPollsForLong) {
  Make(1, 1000);
  Forget(*to_[0]);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Post(i, 0, 8), PostResult::kOk);
  int sent = 0;
  int completed = 0;
  while (sent < 1000) {
    if (from_[0]->Send(sent, 0, 8) == PostResult::kOk) {
      ++sent;
      continue;
    }
    Settle();
    const size_t got = from_[0]->sends().got().size();
    if (got == 0) break;  // the receiving side holds the rest
    completed += static_cast<int>(got);
    from_[0]->sends().got().clear();
  }
  EXPECT_TRUE(Run([&] { return queue_->outstanding() > queue_->available(); }));
  for (int i = 0; i < sent; ++i) Expect(to_[0]->receives(), i);
  for (int i = completed; i < sent; ++i) Expect(from_[0]->sends(), i);
  EXPECT_EQ(queue_->available(), 1000u - static_cast<uint32_t>(sent));
  EXPECT_EQ(queue_->outstanding(), queue_->available());
}

// A pair may also take what its queue has room for only since the pair was made.
TEST_F(SharedReceiveTest, NobodyPollsAfterAResize) {
  Make(1, 2);
  Forget(*to_[0]);
  ASSERT_TRUE(queue_->Resize(100).ok());
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Post(i, 0, 8), PostResult::kOk);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(from_[0]->Send(i, 0, 8), PostResult::kOk);
  for (int i = 0; i < 5; ++i) Expect(from_[0]->sends(), i);
  from_[0]->pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(*from_[0], DisconnectCause::kLocal);
  ExpectDisconnected(*to_[0], DisconnectCause::kPeer);
  for (int i = 0; i < 5; ++i) Expect(to_[0]->receives(), i);
  EXPECT_EQ(queue_->available(), 5u);
}

TEST_F(SharedReceiveTest, TheLowWatermarkComesOnceForEachArming) {
  Make(1, 16);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Post(i, 0, 8), PostResult::kOk);
  queue_->SetLimit(4);
  DrainExecutors();
  EXPECT_EQ(sink_.count(), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(from_[0]->Send(i, 0, 8), PostResult::kOk);
    Expect(to_[0]->receives(), i);
  }
  Settle();
  EXPECT_EQ(sink_.count(), 1);
  queue_->SetLimit(3);  // two receives are left
  Settle();
  EXPECT_EQ(sink_.count(), 2);
  queue_->SetLimit(0);
  Settle();
  EXPECT_EQ(sink_.count(), 2);
}

TEST_F(SharedReceiveTest, ReceivesStayWhenAPairDisconnects) {
  Make(2, 16);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Post(i, 0, 8), PostResult::kOk);
  to_[0]->pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(*from_[0], DisconnectCause::kPeer);
  EXPECT_EQ(queue_->available(), 3u);
  EXPECT_TRUE(to_[0]->receives().got().empty());
  ASSERT_EQ(from_[1]->Send(1, 0, 8), PostResult::kOk);
  Expect(to_[1]->receives(), 0);
}

TEST_F(SharedReceiveTest, AWaitingPairMayGo) {
  Make(2, 16);
  ASSERT_EQ(from_[0]->Send(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from_[1]->Send(1, 0, 8), PostResult::kOk);
  Settle();
  to_[0]->DestroyPair();
  ASSERT_EQ(queue_->available(), 0u);
  const Segment segment = to_[1]->At(0, 8);
  ReceiveRequest request;
  request.id = 7;
  request.segments = absl::MakeConstSpan(&segment, 1);
  ASSERT_EQ(queue_->PostReceive(request), PostResult::kOk);
  Expect(to_[1]->receives(), 7);
}

TEST_F(SharedReceiveTest, AnotherDomainIsRefused) {
  Make(1, 4);
  End& other = NewEnd(b());
  QueuePairOptions options = other.pair_options();
  options.shared_receives = queue_.get();
  EXPECT_FALSE(b().CreateQueuePair(options).ok());
  SharedReceiveOptions wrong;
  EXPECT_FALSE(b().CreateSharedReceiveQueue(wrong).ok());
}

// ----------------------------------------------------------------------------- the queue is dry

// Which pair is served next is certain only if time stands still unless the device works: a pair
// that comes late for its receive lets the next pair go first.
class SharedReceiveLineTest : public SharedReceiveTest {
 protected:
  void SetUp() override {
    if (!device().serves_in_turn()) GTEST_SKIP() << "the device serves in no order";
  }
  bool exact() { return !device().threads(); }
  // The ends send one after the other, so that their messages wait in this order.
  void Wait(absl::Span<const int> order, int messages) {
    for (int i : order) {
      for (int m = 0; m < messages; ++m) ASSERT_EQ(from_[i]->Send(m, 0, 8), PostResult::kOk);
      Settle();
    }
  }
  // Whether the device's own thread gets through its work while the test holds a lock: a late
  // message would make the thread wait for this lock.
  bool PassesBy() {
    Executor& executor = b().executor();
    for (int round = 0; device().threads() && round < 3; ++round) {
      const auto passed = std::make_shared<std::atomic<bool>>(false);
      executor.Post([passed] { *passed = true; });
      const Nanos end = executor.Now() + kNanosPerSecond / 10;
      while (!*passed) {
        if (executor.Now() > end) return false;
      }
    }
    return true;
  }
  size_t GotOf(int i) { return to_[i]->receives().got().size(); }
  size_t Got() {
    size_t sum = 0;
    for (End* to : to_) sum += to->receives().got().size();
    return sum;
  }
};

TEST_F(SharedReceiveLineTest, ConnectionsTakeTurns) {
  constexpr int kPairs = 8, kMessages = 8;
  Make(kPairs, 16);
  const int order[kPairs] = {2, 0, 7, 1, 5, 3, 6, 4};
  Wait(order, kMessages);
  for (size_t n = 0; n < kPairs * kMessages; ++n) {
    ASSERT_EQ(Post(n, 0, 8), PostResult::kOk);
    ASSERT_TRUE(Run([&] { return Got() == n + 1; }));
    if (exact()) {
      EXPECT_EQ(to_[order[n % kPairs]]->receives().got().back().id, n);
    }
    if (n != kPairs * kMessages / 2) continue;
    for (int i = 0; i < kPairs; ++i) EXPECT_GE(GotOf(i), exact() ? 4u : 2u) << i;
  }
  for (int i = 0; i < kPairs; ++i) EXPECT_EQ(GotOf(i), size_t{kMessages});
}

TEST_F(SharedReceiveLineTest, WhoComesLaterGoesBehindThoseWhoWait) {
  Make(3, 16);
  Wait({0, 1}, 1);
  ASSERT_EQ(Post(0, 0, 8), PostResult::kOk);
  ASSERT_EQ(from_[2]->Send(0, 0, 8), PostResult::kOk);
  ASSERT_EQ(Post(1, 8, 8), PostResult::kOk);
  ASSERT_TRUE(Run([&] { return Got() == 2; }));
  if (exact()) {
    EXPECT_EQ(GotOf(2), 0u);
  }
  ASSERT_EQ(Post(2, 16, 8), PostResult::kOk);
  for (End* to : to_) Await(to->receives());
}

TEST_F(SharedReceiveLineTest, SeveralReceivesServeAsMany) {
  constexpr int kPairs = 6;
  Make(kPairs, 16);
  Wait({0, 1, 2, 3, 4, 5}, 2);
  size_t posted = 0;
  for (const size_t n : {4, 1, 7}) {
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(Post(posted + i, 8 * (posted + i), 8), PostResult::kOk);
    }
    posted += n;
    EXPECT_TRUE(Run([&] { return Got() == posted; })) << Got() << " of " << posted;
    for (int i = 0; exact() && i < kPairs; ++i) {
      EXPECT_EQ(GotOf(i), posted / kPairs + (i < static_cast<int>(posted % kPairs) ? 1u : 0u)) << i;
    }
  }
  EXPECT_EQ(queue_->available(), 0u);
}

TEST_F(SharedReceiveLineTest, WhoGoesPassesItOn) {
  Make(4, 16);
  const Segment segment = to_[3]->At(0, 8);
  Wait({0, 1, 2, 3}, 1);
  ReceiveRequest request;
  request.segments = absl::MakeConstSpan(&segment, 1);
  size_t served = 0;  // of the pairs that left: with threads one may have been quick enough
  const auto post = [&] {
    request.id++;
    ASSERT_EQ(queue_->PostReceive(request), PostResult::kOk);
  };
  post();
  for (int i = 0; i < 3; ++i) to_[i]->pair().Disconnect(DisconnectMode::kAbrupt);
  to_[0]->DestroyPair();
  Run([&] { return GotOf(3) != 0 || queue_->available() == 0; });
  Settle();
  if (GotOf(3) == 0) {
    served = 1;
    EXPECT_EQ(queue_->available(), 0u) << "it is there, and nobody was told";
    post();
  }
  const Completion received = Await(to_[3]->receives());
  EXPECT_EQ(received.id, served + 1);
  if (exact()) {
    EXPECT_EQ(served, 0u);
  }
}

// The first pair is woken, but the thread that serves its completion queue does not get to it.
TEST_F(SharedReceiveLineTest, WhoIsNotServedDoesNotHoldUpTheOthers) {
  Make(4, 16);
  Wait({0, 1, 2, 3}, 1);
  Forget(*to_[0]);
  std::optional<PassLockHolder> holder;
  do {
    holder.reset();
    DrainExecutors();
    holder.emplace(&to_[0]->receives().queue().lock());
  } while (!PassesBy());
  EXPECT_EQ(Post(0, 0, 8), PostResult::kOk);
  EXPECT_TRUE(Run([&] { return Got() == 1; })) << "they wait for it";
  EXPECT_EQ(Post(1, 8, 8), PostResult::kOk);
  EXPECT_TRUE(Run([&] { return Got() == 2; }));
  holder.reset();
  EXPECT_EQ(GotOf(0), 0u);
  if (exact()) {
    EXPECT_EQ(GotOf(3), 0u);
  }
  Settle();  // the first pair is served, finds no receive, and is next in line again
  ASSERT_EQ(Post(2, 16, 8), PostResult::kOk);
  Settle();
  if (exact()) {
    EXPECT_EQ(Got(), 2u);
    EXPECT_EQ(queue_->available(), 0u);
  }
  ASSERT_EQ(Post(3, 24, 8), PostResult::kOk);
  for (End* to : to_) Await(to->receives());
}

TEST_F(SharedReceiveLineTest, WhoIsNotPolledIsServedAndHoldsUpNobody) {
  constexpr int kPairs = 4;
  Make(kPairs, 16);
  Wait({0, 1, 2, 3}, 2);
  for (int i = 0; i < 2; ++i) Forget(*to_[i]);
  for (int n = 0; n < 2 * kPairs; ++n) ASSERT_EQ(Post(n, 8 * n, 8), PostResult::kOk);
  EXPECT_TRUE(Run([&] { return Got() == kPairs; }));
  EXPECT_TRUE(Run([&] { return queue_->available() == 0; }));
  for (End* to : to_) {
    for (int n = 0; n < 2; ++n) Await(to->receives());
  }
}

TEST_F(SharedReceiveLineTest, WhoDropsItsMessageDoesNotWait) {
  Make(1, 16);
  EndOptions options;
  from_.push_back(&NewEnd(a(), options));
  options.domain = domain_.get();
  options.shared_receives = queue_.get();
  options.no_receive = NoReceive::kDrop;
  to_.push_back(&NewEnd(b(), options));
  Connect(*from_.back(), *to_.back());
  Wait({1, 0}, 1);
  EXPECT_EQ(to_[1]->events().CountOf(Event::kDropped), 1u);
  ASSERT_EQ(Post(7, 0, 8), PostResult::kOk);
  Expect(to_[0]->receives(), 7);
  ASSERT_EQ(Post(8, 0, 8), PostResult::kOk);
  ASSERT_EQ(from_[1]->Send(1, 0, 8), PostResult::kOk);
  Expect(to_[1]->receives(), 8);
}

// Half of the pairs are polled, the device alone serves the others; the queue is dry most of the
// time, and some of the pairs end while they wait.
TEST_F(SharedReceiveLineTest, NobodyIsForgotten) {
  if (!device().threads()) GTEST_SKIP() << "needs threads";
  constexpr int kPairs = 12, kGoing = 4, kMessages = 40;
  constexpr int kThreads = 2, kReceives = (kPairs + kGoing) * kMessages;
  Make(kPairs + kGoing, 3);
  for (int i = 0; i < kPairs; i += 2) Forget(*to_[i]);
  std::atomic<int> next{0};
  std::vector<Segment> segments;
  for (int n = 0; n < kReceives; ++n) segments.push_back(to_[0]->At(8 * n, 8));
  std::vector<std::jthread> posters;  // they end with this test
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&](const std::stop_token& stop) {
      for (int n; (n = next.fetch_add(1)) < kReceives;) {
        ReceiveRequest request;
        request.id = n;
        request.segments = absl::MakeConstSpan(&segments[n], 1);
        while (!stop.stop_requested() && queue_->PostReceive(request) != PostResult::kOk) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (int m = 0; m < kMessages; ++m) {
    for (int i = 0; i < kPairs; ++i) ASSERT_EQ(from_[i]->Send(m, 0, 8), PostResult::kOk);
    for (int i = kPairs; m < kMessages / 2 && i < kPairs + kGoing; ++i) {
      ASSERT_EQ(from_[i]->Send(m, 0, 8), PostResult::kOk);
    }
    PollEnds();
    if (m % 8 == 7 && m < kMessages / 2 + 16) {
      const int going = kPairs + (m / 8) % kGoing;
      to_[going]->pair().Disconnect(DisconnectMode::kAbrupt);
    }
  }
  size_t sum = 0;
  EXPECT_TRUE(Run([&] {
    sum = 0;
    for (int i = 1; i < kPairs; i += 2) sum += GotOf(i);
    return sum == kPairs / 2 * kMessages;
  })) << sum;
  for (int i = 0; i < kPairs; i += 2) {
    EXPECT_TRUE(Run([&] {
      to_[i]->receives().Poll();
      return GotOf(i) == kMessages;
    })) << i
        << ": " << GotOf(i);
  }
}

}  // namespace
}  // namespace viaduct::verbs
