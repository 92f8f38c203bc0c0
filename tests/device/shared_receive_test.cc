// Shared receive queues: who gets which receive, waiting, limits, low watermark.
#include <atomic>
#include <memory>
#include <vector>

#include "tests/device/ends.h"

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
  // Into the memory of the first end.
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

// More than one pair may take before its completions are polled.
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
    if (got == 0) break;  // the other side holds what comes
    completed += static_cast<int>(got);
    from_[0]->sends().got().clear();
  }
  EXPECT_TRUE(Run([&] { return queue_->outstanding() > queue_->available(); }));
  for (int i = 0; i < sent; ++i) Expect(to_[0]->receives(), i);
  for (int i = completed; i < sent; ++i) Expect(from_[0]->sends(), i);
  EXPECT_EQ(queue_->available(), 1000u - static_cast<uint32_t>(sent));
  EXPECT_EQ(queue_->outstanding(), queue_->available());
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
  queue_->SetLimit(3);  // two are left
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

}  // namespace
}  // namespace viaduct::verbs
