// When the device has no more queue pairs.

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/failing_calls.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {
namespace {

class PairMishapsTest : public MishapsTest {
 protected:
  // Waits until the pairs of earlier tests are gone.
  void SetUp() override { ASSERT_TRUE(AwaitPairs(0)); }
  void ExpectMessage(End& from, End& to) {
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
    Expect(to.receives(), 1);
    Expect(from.sends(), 2);
  }
  // Both are idle again.
  void Disconnect(End& from, End& to) {
    from.pair().Disconnect(DisconnectMode::kAbrupt);
    ExpectDisconnected(to, DisconnectCause::kPeer);
    from.pair().Reset();
    to.pair().Reset();
  }
};

TEST_F(PairMishapsTest, OneIsThereBeforeTheFirstConnection) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  EXPECT_EQ(rdma_mock::LivePairs(), 2);
  rdma_mock::LimitPairs(0);
  Connect(from, to);
  ExpectMessage(from, to);
}

TEST_F(PairMishapsTest, EachConnectionHasItsOwn) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Disconnect(from, to);
  EXPECT_TRUE(AwaitPairs(0));
  Connect(from, to);
  EXPECT_EQ(rdma_mock::LivePairs(), 2);
  ExpectMessage(from, to);
}

// The room is that in the device's completion queue, which is limited.
TEST_F(PairMishapsTest, TheNextHasTheRoomOfOneThatHasEnded) {
  auto domain = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok()) << domain.status();
  SharedReceiveOptions shared;
  shared.domain = domain->get();
  shared.max_receives = 64;
  auto receives = b().CreateSharedReceiveQueue(shared);
  ASSERT_TRUE(receives.ok()) << receives.status();
  EndOptions sharing;
  sharing.domain = domain->get();
  sharing.shared_receives = receives->get();
  for (End* const end : {&NewEnd(b()), &NewEnd(b(), sharing)}) {
    end->DestroyPair();
    const std::string before = rdma_mock::LiveObjects();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(b().CreateQueuePair(end->pair_options()).ok());
    EXPECT_EQ(rdma_mock::LiveObjects(), before);
  }
  DestroyEnds();
}

TEST_F(PairMishapsTest, WithoutRoomForOneThereIsNone) {
  End& end = NewEnd(a());
  rdma_mock::LimitPairs(0);
  EXPECT_TRUE(absl::IsResourceExhausted(a().CreateQueuePair(end.pair_options()).status()));
  end.DestroyPair();
  EXPECT_EQ(rdma_mock::LivePairs(), 0);
  EXPECT_TRUE(a().CreateQueuePair(end.pair_options()).ok());
}

TEST_F(PairMishapsTest, WhateverTheDeviceSaysThereIsNoneLeft) {
  End& end = NewEnd(a());
  rdma_mock::FailPairs(EIO);
  const absl::Status status = a().CreateQueuePair(end.pair_options()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(PairMishapsTest, WithoutRoomForALargerOneTheOldOneStays) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  rdma_mock::LimitPairs(0);
  QueuePairOptions more = from.pair_options();
  more.max_sends *= 2;
  EXPECT_TRUE(absl::IsResourceExhausted(from.pair().Modify(more)));
  EXPECT_TRUE(from.pair().Modify(from.pair_options()).ok());
  Connect(from, to);
  ExpectMessage(from, to);
}

TEST_F(PairMishapsTest, AChangeReplacesIt) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  QueuePairOptions more = from.pair_options();
  more.max_sends *= 2;
  ASSERT_TRUE(from.pair().Modify(more).ok());
  EXPECT_EQ(rdma_mock::LivePairs(), 2);
  Connect(from, to);
  for (uint64_t i = 0; i < more.max_sends; ++i) {
    ASSERT_EQ(from.Write(i, 0, 8, to, 0), PostResult::kOk) << i;
  }
  for (uint64_t i = 0; i < more.max_sends; ++i) Expect(from.sends(), i);
}

// The pair needs no room until it connects again.
TEST_F(PairMishapsTest, AChangeBehindAConnectionNeedsNoRoom) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Disconnect(from, to);
  ASSERT_TRUE(AwaitPairs(0));
  rdma_mock::LimitPairs(0);
  QueuePairOptions more = from.pair_options();
  more.max_sends *= 2;
  EXPECT_TRUE(from.pair().Modify(more).ok());
  EXPECT_EQ(rdma_mock::LivePairs(), 0);
}

TEST_F(PairMishapsTest, WithoutRoomALaterConnectionFails) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Disconnect(from, to);
  ASSERT_TRUE(AwaitPairs(0));
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  // Enough for the side that dials.
  rdma_mock::LimitPairs(1);
  ASSERT_TRUE(Dial(from, b(), (*listener)->port()).ok());
  auto request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(request->Accept(to.pair(), {})));
  EXPECT_EQ(AwaitEvent(from).kind, Event::kConnectFailed);
  ASSERT_TRUE(AwaitPairs(0));
  rdma_mock::LimitPairs(0);
  ASSERT_TRUE(Dial(from, b(), (*listener)->port()).ok());
  EXPECT_EQ(AwaitEvent(from).outcome, ConnectOutcome::kNoResources);
}

// Two devices may have one address, and the kernel chooses between them.
TEST_F(PairMishapsTest, AConnectionOfAnotherDeviceIsNone) {
  End& from = NewEnd(a());
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  rdma_mock::ConnectElsewhere(true);
  ASSERT_TRUE(Dial(from, b(), (*listener)->port()).ok());
  EXPECT_EQ(AwaitEvent(from).outcome, ConnectOutcome::kNoResources);
  EXPECT_EQ(requests.count(), 0u);
}

}  // namespace
}  // namespace viaduct::verbs
