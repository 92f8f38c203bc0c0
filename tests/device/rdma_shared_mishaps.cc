// What goes wrong with an RDMA device: receives of a shared queue.
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/failing_calls.h"
#include "tests/rdma_mock/mishaps.h"
#include "verbs/base/busy_control_thread.h"

namespace viaduct::verbs {
namespace {

// `from` sends to `to`, whose shared queue has one receive, number 1.
class SharedMishapsTest : public MishapsTest {
 protected:
  void SetUp() override {
    // Waits until the pairs of earlier tests are gone.
    ASSERT_TRUE(AwaitPairs(0));
    auto domain = b().CreateDomain(/*wildcard=*/false);
    ASSERT_TRUE(domain.ok()) << domain.status();
    domain_ = *std::move(domain);
    SharedReceiveOptions shared;
    shared.domain = domain_.get();
    shared.max_receives = 2;
    auto queue = b().CreateSharedReceiveQueue(shared);
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
    EndOptions options;
    options.domain = domain_.get();
    options.shared_receives = queue_.get();
    from_ = &NewEnd(a());
    to_ = &NewEnd(b(), options);
    Connect(*from_, *to_);
    ASSERT_EQ(PostReceive(1, 0), PostResult::kOk);
  }
  void TearDown() override { DestroyEnds(); }

  // Posts a receive of eight bytes.
  PostResult PostReceive(uint64_t id, size_t at) {
    const Segment segment = to_->At(at, 8);
    ReceiveRequest request;
    request.id = id;
    request.segments = absl::MakeConstSpan(&segment, 1);
    return queue_->PostReceive(request);
  }

  // The message takes the receive, and does not complete before the connection ends.
  void SendWhatGetsStuck() {
    rdma_mock::GetMessagesStuck(1);
    ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
  }
  // The receive is there for the next connection.
  void ExpectReceiveIsBack() {
    EXPECT_EQ(queue_->available(), 1u);
    EXPECT_EQ(queue_->outstanding(), 1u);
    from_->pair().Reset();
    to_->pair().Reset();
    from_->sends().got().clear();
    Connect(*from_, *to_);
    from_->Put(0, Pattern(8, 1));
    ASSERT_EQ(from_->Send(3, 0, 8), PostResult::kOk);
    Expect(to_->receives(), 1);
    EXPECT_EQ(to_->Get(0, 8), Pattern(8, 1));
    EXPECT_EQ(queue_->outstanding(), 0u);
  }

  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<SharedReceiveQueue> queue_;
  End* from_ = nullptr;
  End* to_ = nullptr;
};

// A receive that the device flushes after the end of the connection belongs to nobody.
TEST_F(SharedMishapsTest, AReceiveThatNobodyPollsGoesBack) {
  SendWhatGetsStuck();
  rdma_mock::ShowNoCompletions(true);
  to_->pair().Disconnect(DisconnectMode::kAbrupt);
  rdma_mock::ShowNoCompletions(false);
  ExpectDisconnected(*from_, DisconnectCause::kPeer);
  for (int i = 0; i < 10; ++i) to_->receives().Poll();
  ExpectReceiveIsBack();
}

TEST_F(SharedMishapsTest, WhatTheDeviceTakesBackNoMoreIsNotThere) {
  SendWhatGetsStuck();
  rdma_mock::ShowNoCompletions(true);
  to_->pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(*from_, DisconnectCause::kPeer);
  DrainExecutors();
  rdma_mock::FailCall(1, 0);
  rdma_mock::ShowNoCompletions(false);
  EXPECT_TRUE(Run([&] { return queue_->available() == 0; }));
  EXPECT_STREQ(rdma_mock::FailedCall(), "ibv_post_srq_recv");
  EXPECT_EQ(queue_->outstanding(), 0u);
}

TEST_F(SharedMishapsTest, AReceiveThatTheDeviceRefusesIsNotThere) {
  rdma_mock::FailCall(1, 0);
  EXPECT_EQ(PostReceive(2, 0), PostResult::kQueueFull);
  EXPECT_STREQ(rdma_mock::FailedCall(), "ibv_post_srq_recv");
  EXPECT_EQ(queue_->available(), 1u);
  EXPECT_EQ(queue_->outstanding(), 1u);
  EXPECT_EQ(PostReceive(2, 0), PostResult::kOk);
}

// As without a shared queue.
TEST_F(SharedMishapsTest, NothingIsReceivedBehindAReceiveThatHasFailed) {
  ASSERT_EQ(PostReceive(2, 1000), PostResult::kOk);
  BusyControlThread busy;
  ASSERT_EQ(from_->Send(3, 0, 16), PostResult::kOk);
  ASSERT_EQ(from_->Send(4, 0, 8), PostResult::kOk);
  while (to_->receives().got().size() < 2) to_->receives().Poll();
  busy.LetGo();
  Expect(to_->receives(), 1, Status::kLocalLength);
  Expect(to_->receives(), 2, Status::kFlushed);
  ExpectBroken(*to_);
}

// The device takes its time to flush the receives that a pair has taken ahead, and the pair is not
// destroyed before that.
TEST_F(SharedMishapsTest, AReceiveThatIsFlushedLateIsNotLost) {
  if (!a().attributes().immediate_data) {
    GTEST_SKIP() << "no iWARP device says when it has flushed all";
  }
  SendWhatGetsStuck();
  rdma_mock::FlushLate(true);
  to_->pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(*from_, DisconnectCause::kPeer);
  EXPECT_TRUE(AwaitPairs(1));
  rdma_mock::FlushLate(false);
  EXPECT_TRUE(AwaitPairs(0));
  ExpectReceiveIsBack();
}

// The connection was given up before anybody knew that it was there.
TEST_F(SharedMishapsTest, NorIsOneOfAConnectionThatNobodyHasSeen) {
  if (!a().attributes().immediate_data) {
    GTEST_SKIP() << "no iWARP device says when it has flushed all";
  }
  from_->pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
  from_->pair().Reset();
  to_->pair().Reset();
  ASSERT_TRUE(AwaitPairs(0));
  const auto request = Ask(*from_, b());
  ASSERT_NE(request, nullptr);
  rdma_mock::LoseConfirmations(1);
  ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
  ASSERT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
  SendWhatGetsStuck();
  rdma_mock::FlushLate(true);
  to_->pair().Disconnect(DisconnectMode::kAbrupt);
  Settle();
  EXPECT_EQ(rdma_mock::LivePairs(), 2) << "the peer hears of it when the id goes";
  rdma_mock::FlushLate(false);
  ExpectDisconnected(*from_, DisconnectCause::kPeer);
  EXPECT_TRUE(AwaitPairs(0));
  ExpectReceiveIsBack();
}

}  // namespace
}  // namespace viaduct::verbs
