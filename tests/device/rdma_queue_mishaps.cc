// What goes wrong with an RDMA device: its queues.
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/mishaps.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/clock.h"
#include "verbs/base/control_thread.h"

namespace viaduct::verbs {
namespace {

// `count` pieces of an end's memory, of `length` bytes each, which begin `apart` bytes apart.
std::vector<Segment> Pieces(const End& end, size_t count, size_t apart, size_t length) {
  std::vector<Segment> pieces;
  for (size_t i = 0; i < count; ++i) pieces.push_back(end.At(apart * i, length));
  return pieces;
}

// Posts a request between the memory in `list` and the memory of `to` from `at` on.
PostResult Post(Opcode opcode, uint64_t id, End& from, absl::Span<const Segment> list, End& to,
                size_t at, uint16_t flags = 0) {
  SendRequest request;
  request.id = id;
  request.flags = flags;
  request.opcode = opcode;
  request.segments = list;
  request.remote_address = to.Address(at);
  request.remote_key = to.region().key();
  return from.pair().PostSend(request);
}

// The read becomes several requests of the device, and the last ones are refused.
TEST_F(MishapsTest, ARefusedPartFailsTheWhole) {
  constexpr int kSegments = 252;
  EndOptions many;
  many.max_segments = kSegments;
  for (int taken : {0, 1, 9}) {
    End& from = NewEnd(a(), many);
    End& to = NewEnd(b(), many);
    Connect(from, to);
    std::vector<Segment> segments;
    for (int i = 0; i < kSegments; ++i) segments.push_back(from.At(i * 16, 8));
    rdma_mock::RefuseSendsAfter(taken);
    ASSERT_EQ(Post(Opcode::kRead, 1, from, segments, to, 0), PostResult::kOk);
    rdma_mock::RefuseSendsAfter(-1);
    Expect(from.sends(), 1, Status::kTransport);
    ExpectDisconnected(from, DisconnectCause::kBroken);
    EXPECT_TRUE(Run([&] { return from.pair().SendIdle(); }));
    DestroyEnds();
  }
}

// Even if the connection ends before the device is done with the requests that it has taken.
TEST_F(MishapsTest, ARefusedPartFailsTheWholeThoughOthersAreNotDone) {
  constexpr int kSegments = 252;
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::ShowNoCompletions(true);
  rdma_mock::RefuseSendsAfter(1);
  ASSERT_EQ(Post(Opcode::kRead, 1, from, Pieces(from, kSegments, 16, 8), to, 0), PostResult::kOk);
  rdma_mock::RefuseSendsAfter(-1);
  ExpectDisconnected(from, DisconnectCause::kBroken);
  rdma_mock::ShowNoCompletions(false);
  Expect(from.sends(), 1, Status::kTransport);
}

// siw completes a send although the read before it has not been answered; InfiniBand does not.
class OvertakenTest : public MishapsTest {
 protected:
  void SetUp() override {
    if (getenv("RDMA_MOCK_IWARP") == nullptr) GTEST_SKIP() << "InfiniBand keeps their order";
    rdma_mock::HoldReads(true);
  }
};

TEST_F(OvertakenTest, WhatOvertakesAReadWaitsForIt) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
  to.Put(1000, Pattern(64, 7));
  ASSERT_EQ(from.Send(0, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Read(1, 2000, 64, to, 1000), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8, kConfirm), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 8, kSuppress), PostResult::kOk);
  ASSERT_EQ(from.Read(4, 3000, 32, to, 1000), PostResult::kOk);
  ASSERT_EQ(from.Send(5, 0, 8), PostResult::kOk);
  for (int i = 0; i < 4; ++i) Expect(to.receives(), i);
  Expect(from.sends(), 0);
  Settle();
  EXPECT_TRUE(from.sends().got().empty()) << "what is behind a read is shown before it";
  EXPECT_FALSE(from.pair().SendIdle());
  rdma_mock::HoldReads(false);
  Expect(from.sends(), 1);
  EXPECT_EQ(from.Get(2000, 64), Pattern(64, 7));
  EXPECT_EQ(Expect(from.sends(), 2).opcode, Opcode::kSend);
  Expect(from.sends(), 4);
  EXPECT_EQ(from.Get(3000, 32), to.Get(1000, 32));
  Expect(from.sends(), 5);
  EXPECT_TRUE(Run([&] { return from.pair().SendIdle(); }));
}

TEST_F(OvertakenTest, NothingSucceedsBehindAReadThatIsFlushed) {
  for (const bool local : {true, false}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    Connect(from, to);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
    ASSERT_EQ(from.Send(0, 0, 8, kConfirm), PostResult::kOk);
    ASSERT_EQ(from.Read(1, 2000, 64, to, 1000), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(3, 0, 8, kSuppress), PostResult::kOk);
    for (int i = 0; i < 3; ++i) Expect(to.receives(), i);
    (local ? from : to).pair().Disconnect(DisconnectMode::kAbrupt);
    for (int id : {0, 1, 2, 3}) Expect(from.sends(), id, Status::kFlushed);
    DestroyEnds();
  }
}

// The device has not completed the read yet when its connection ends.
TEST_F(OvertakenTest, NothingSucceedsBehindAReadOfWhichNothingIsTold) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
  ASSERT_EQ(from.Read(2, 2000, 64, to, 1000), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
  PollEnds();  // so that the send is done
  rdma_mock::ShowNoCompletions(true);
  from.pair().Disconnect(DisconnectMode::kAbrupt);
  for (int id : {2, 3}) Expect(from.sends(), id, Status::kFlushed);
  rdma_mock::ShowNoCompletions(false);
}

// No further request begins, although an earlier one is still in flight.
TEST_F(MishapsTest, ASendBehindAGracefulDisconnectIsFlushed) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::HoldReads(true);
  ASSERT_EQ(from.Read(1, 0, 8, to, 1000), PostResult::kOk);
  from.pair().Disconnect(DisconnectMode::kGraceful);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  rdma_mock::HoldReads(false);
  Expect(from.sends(), 1);
  Expect(from.sends(), 2, Status::kFlushed);
  ExpectDisconnected(from, DisconnectCause::kLocal);
  ExpectDisconnected(to, DisconnectCause::kPeer);
}

// The device takes fewer segments for a read than for any other request.
TEST_F(MishapsTest, ALongReadFitsIntoTheSmallestQueue) {
  constexpr int kSegments = 252;
  EndOptions small;
  small.max_sends = 1;
  small.max_segments = kSegments;
  End& from = NewEnd(a(), small);
  End& to = NewEnd(b());
  Connect(from, to);
  to.Put(0, Pattern(kSegments, 1));
  std::vector<Segment> segments;
  for (int i = 0; i < kSegments; ++i) segments.push_back(from.At(i, 1));
  ASSERT_EQ(Post(Opcode::kRead, 1, from, segments, to, 0), PostResult::kOk);
  Expect(from.sends(), 1);
  EXPECT_EQ(from.Get(0, kSegments), Pattern(kSegments, 1));
  // Its parts are done long before somebody polls.
  Forget(from);
  for (int id : {2, 3}) {
    ASSERT_EQ(Post(Opcode::kRead, id, from, segments, to, 0, kSuppress), PostResult::kOk) << id;
  }
}

// Nobody polls, and the places become free one by one.
TEST_F(MishapsTest, CompletionsOfOthersAreNotInTheWayOfSuppressedRequests) {
  constexpr int kOthers = 60;
  constexpr int kFew = 4;
  Inbox inbox(a());
  EndOptions options;
  options.shared_inbox = &inbox;
  End& others = NewEnd(a(), options);
  options.max_sends = kFew;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b());
  End& other_to = NewEnd(b());
  Connect(others, other_to);
  Connect(from, to);
  Forget(others);
  Forget(from);
  for (int i = 0; i < kOthers; ++i) {
    ASSERT_EQ(others.Write(i, 0, 8, other_to, 0, kSuppress), PostResult::kOk);
  }
  for (int i = 0; i < 2 * kFew; ++i) {
    ASSERT_EQ(from.Write(i, 0, 8, to, 0, kSuppress), PostResult::kOk) << i;
  }
  DestroyEnds();  // before the inbox
}

// The device has no room for as many requests with inline bytes.
TEST_F(MishapsTest, ALargeQueueHasNoInlineBytes) {
  EndOptions large;
  large.max_sends = a().attributes().max_requests_per_queue;
  End& from = NewEnd(a(), large);
  End& to = NewEnd(b());
  ConnectWithImmediate(from, to);
  from.Put(0, Pattern(16, 1));
  const Segment two[] = {from.At(0, 8), from.At(8, 8)};
  for (int id : {1, 2, 3}) ASSERT_EQ(to.Receive(id, id * 16, 16), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 16), PostResult::kOk);
  ASSERT_EQ(from.Send(5, two), PostResult::kOk);
  ASSERT_EQ(from.Write(6, 0, 16, to, 1000, kImmediate, 42), PostResult::kOk);
  for (int id : {4, 5, 6}) Expect(from.sends(), id);
  for (int id : {1, 2}) {
    Expect(to.receives(), id);
    EXPECT_EQ(to.Get(id * 16, 16), Pattern(16, 1));
  }
  EXPECT_EQ(Expect(to.receives(), 3).immediate, 42u);
  EXPECT_EQ(to.Get(1000, 16), Pattern(16, 1));
}

// Nor has the device room for as many requests with long lists of segments.
TEST_F(MishapsTest, ALargeQueueTakesLongLists) {
  constexpr uint32_t kSegments = 16;
  EndOptions large;
  large.max_sends = a().attributes().max_requests_per_queue;
  large.max_segments = kSegments;
  End& from = NewEnd(a(), large);
  End& to = NewEnd(b());
  Connect(from, to);
  from.Put(0, Pattern(16 * kSegments, 1));
  const std::vector<Segment> list = Pieces(from, kSegments, 16, 16);
  ASSERT_EQ(to.Receive(1, 0, 16 * kSegments), PostResult::kOk);
  ASSERT_EQ(from.Send(2, list), PostResult::kOk);
  ASSERT_EQ(Post(Opcode::kWrite, 3, from, list, to, 1000), PostResult::kOk);
  for (int id : {2, 3}) Expect(from.sends(), id);
  Expect(to.receives(), 1);
  for (int at : {0, 1000}) EXPECT_EQ(to.Get(at, 16 * kSegments), Pattern(16 * kSegments, 1));
  from.Put(0, Bytes(16 * kSegments));
  ASSERT_EQ(Post(Opcode::kRead, 4, from, list, to, 1000), PostResult::kOk);
  Expect(from.sends(), 4);
  EXPECT_EQ(from.Get(0, 16 * kSegments), Pattern(16 * kSegments, 1));
}

// A receive left by a failed attempt may have more segments than the device takes on the next
// connection.
TEST_F(MishapsTest, AReceiveThatWasLeftMayBeLongForTheNextConnection) {
  constexpr uint32_t kSegments = 16;
  EndOptions many;
  many.max_segments = kSegments;
  End& to = NewEnd(a(), many);
  End& from = NewEnd(b());
  ASSERT_EQ(to.Receive(1, Pieces(to, kSegments, 16, 4)), PostResult::kOk);
  const auto request = Ask(to, b());
  ASSERT_NE(request, nullptr);
  request->Reject({});
  EXPECT_EQ(AwaitEvent(to).kind, Event::kConnectFailed);
  QueuePairOptions large = to.pair_options();
  large.max_sends = a().attributes().max_requests_per_queue;
  ASSERT_TRUE(to.pair().Modify(large).ok());
  Connect(to, from);
  from.Put(0, Pattern(4 * kSegments, 3));
  ASSERT_EQ(from.Send(2, 0, 4 * kSegments), PostResult::kOk);
  Expect(from.sends(), 2);
  EXPECT_EQ(Expect(to.receives(), 1).length, 4 * kSegments);
  for (size_t i = 0; i < kSegments; ++i) EXPECT_EQ(to.Get(16 * i, 4), from.Get(4 * i, 4)) << i;
}

// The receive goes through memory of our own, so the device sees nothing wrong with it.
TEST_F(MishapsTest, AReceiveOfManySegmentsThatFailsEndsTheConnection) {
  constexpr int kSegments = 20;
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), many);
  Connect(from, to);
  std::vector<Segment> list = Pieces(to, kSegments, 16, 1);
  list[kSegments / 2].key = 0x123456;
  ASSERT_EQ(to.Receive(1, list), PostResult::kOk);
  ASSERT_EQ(to.Receive(2, 1000, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, kSegments), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1, Status::kLocalProtection);
  Expect(to.receives(), 2, Status::kFlushed);
  ExpectBroken(to);
}

// A device does not take as many bytes, and no message has as many.
TEST_F(MishapsTest, AReceiveMayHaveMoreBytesThanAMessage) {
  constexpr size_t kGiB = size_t{1} << 30;
  void* const memory = mmap(nullptr, 3 * kGiB, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  auto region = b().Register(to.domain(), memory, 3 * kGiB, kLocalWrite);
  ASSERT_TRUE(region.ok()) << region.status();
  Connect(from, to);
  const auto at = [&](size_t begin, size_t length) {
    return Segment{reinterpret_cast<uint64_t>(memory) + begin, (*region)->key(),
                   static_cast<uint32_t>(length)};
  };
  ASSERT_EQ(to.Receive(1, {{at(0, 3 * kGiB)}}), PostResult::kOk);
  ASSERT_EQ(to.Receive(2, {{at(0, kGiB), at(kGiB, kGiB), at(2 * kGiB, kGiB)}}), PostResult::kOk);
  for (int id : {3, 4}) ASSERT_EQ(from.Send(id, 0, 64), PostResult::kOk);
  for (int id : {1, 2}) EXPECT_EQ(Expect(to.receives(), id).length, 64u);
  DestroyEnds();
  munmap(memory, 3 * kGiB);
}

// Even if the device goes on, as siw does after a message that was to invalidate memory of its
// receiver.
TEST_F(MishapsTest, NothingIsReceivedBehindAReceiveThatHasFailed) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(to.Receive(2, 1000, 8), PostResult::kOk);
  BusyControlThread busy;  // otherwise that thread would end the connection
  ASSERT_EQ(from.Send(3, 0, 16), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 8), PostResult::kOk);
  while (to.receives().got().size() < 2) to.receives().Poll();
  busy.LetGo();
  Expect(to.receives(), 1, Status::kLocalLength);
  Expect(to.receives(), 2, Status::kFlushed);
  ExpectBroken(to);
}

// Such a send is copied when it is posted, and what the read brings is not there yet.
TEST_F(MishapsTest, AFencedSendOfManySegmentsIsRefusedBehindARead) {
  constexpr int kSegments = 40;
  EndOptions many;
  many.max_segments = kSegments;
  many.max_reads_out = 1;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b());
  Connect(from, to);
  const std::vector<Segment> list = Pieces(from, kSegments, 4, 4);
  ASSERT_EQ(to.Receive(1, 0, 1000), PostResult::kOk);
  ASSERT_EQ(Post(Opcode::kSend, 2, from, list, to, 0, kFence), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);

  rdma_mock::HoldReads(true);
  ASSERT_EQ(from.Read(3, 0, 4, to, 2000), PostResult::kOk);
  ASSERT_EQ(to.Receive(4, 0, 1000), PostResult::kOk);
  ASSERT_EQ(Post(Opcode::kSend, 5, from, list, to, 0, kFence), PostResult::kOk);
  rdma_mock::HoldReads(false);
  Expect(from.sends(), 3);
  Expect(from.sends(), 5, Status::kLocalLength);
  Expect(to.receives(), 4, Status::kFlushed);
}

// All of the read is done, but what is before its end fills more than one look at the device.
TEST_F(MishapsTest, AFencedSendOfManySegmentsFollowsAReadThatIsDone) {
  constexpr int kSegments = 40;
  EndOptions many;
  many.max_segments = kSegments;
  Inbox inbox(a());
  many.shared_inbox = &inbox;
  many.max_reads_out = 1;
  End& busy = NewEnd(a(), many);
  End& from = NewEnd(a(), many);
  End& peer = NewEnd(b());
  End& to = NewEnd(b());
  Connect(busy, peer);
  Connect(from, to);
  constexpr int kWrites = 20;
  BusyControlThread still;
  for (int id = 1; id <= kWrites; ++id) {
    ASSERT_EQ(busy.PostTo(Opcode::kWrite, id, 8, peer.Address(0), peer.region().key()),
              PostResult::kOk);
  }
  const std::vector<Segment> list = Pieces(from, kSegments, 4, 4);
  ASSERT_EQ(Post(Opcode::kRead, 50, from, list, to, 0), PostResult::kOk);
  ASSERT_EQ(to.Receive(1, 0, 1000), PostResult::kOk);
  ASSERT_EQ(Post(Opcode::kSend, 51, from, list, to, 0, kFence), PostResult::kOk);
  still.LetGo();
  for (int id = 1; id <= kWrites; ++id) Expect(inbox, id);
  for (int id : {50, 51}) Expect(inbox, id);
  Expect(to.receives(), 1);
}

// Unless told otherwise, libmlx5 would leave a short response elsewhere until it is polled.
TEST_F(MishapsTest, AFencedSendHasWhatAShortReadHasBrought) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  to.Put(1000, Pattern(8, 1));
  from.Put(0, Pattern(8, 2));
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  rdma_mock::ShowNoCompletions(true);
  ASSERT_EQ(from.Read(2, 0, 8, to, 1000), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 8, kFence), PostResult::kOk);
  rdma_mock::ShowNoCompletions(false);
  for (int id : {2, 3}) Expect(from.sends(), id);
  Expect(to.receives(), 1);
  EXPECT_EQ(to.Get(0, 8), Pattern(8, 1));
}

// The device finds no memory for the receive, however short the message is.
TEST_F(MishapsTest, AReceiveForWhichThereWasNoMemoryFailsWhereAMessageMeetsIt) {
  constexpr int kSegments = 20;
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), many);
  Connect(from, to);
  rdma_mock::LimitRegistrations(0);
  ASSERT_EQ(to.Receive(1, Pieces(to, kSegments, 16, 1)), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, kSegments), PostResult::kOk);
  Expect(to.receives(), 1, Status::kLocalProtection);
  ExpectBroken(to);
}

// A device reports to the receiver the length of one request, not of several.
TEST_F(MishapsTest, AWriteOfManySegmentsSaysHowLongItIs) {
  constexpr int kSegments = 20;
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b());
  ConnectWithImmediate(from, to);
  from.Put(0, Pattern(4 * kSegments, 1));
  const std::vector<Segment> list = Pieces(from, kSegments, 4, 4);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(Post(Opcode::kWrite, 2, from, list, to, 1000, kImmediate), PostResult::kOk);
  Expect(from.sends(), 2);
  const Completion got = Expect(to.receives(), 1);
  EXPECT_EQ(got.opcode, Opcode::kReceiveWrite);
  EXPECT_EQ(got.length, 4u * kSegments);
  EXPECT_EQ(to.Get(1000, 4 * kSegments), Pattern(4 * kSegments, 1));
}

// A pair that a request has broken ends when that request's turn comes, and reports the end then.
TEST_F(MishapsTest, ARefusedSendWaitsForThoseBeforeIt) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(3, 0, 8), PostResult::kOk);
  rdma_mock::ShowNoCompletions(true);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  const Segment unknown = {from.Address(0), 0x123456, 8};
  ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&unknown, 1)), PostResult::kOk);
  DrainExecutors();
  EXPECT_FALSE(from.pair().Ended());
  rdma_mock::ShowNoCompletions(false);
  Expect(from.sends(), 1);
  Expect(from.sends(), 2, Status::kLocalProtection);
  EXPECT_TRUE(from.pair().Ended());
  ExpectBroken(from);
}

// The connection is about to end.
TEST_F(MishapsTest, NothingIsSentBehindARefusedSend) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(3, 0, 8), PostResult::kOk);
  BusyControlThread busy;
  rdma_mock::RefuseSendsAfter(0);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  rdma_mock::RefuseSendsAfter(-1);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  busy.LetGo();
  Expect(from.sends(), 1, Status::kTransport);
  Expect(from.sends(), 2, Status::kFlushed);
  Expect(to.receives(), 3, Status::kFlushed);
}

// What an ended connection has left in the device's queue does not count, however much it is.
TEST_F(MishapsTest, AWaiterFindsWhatLiesBehindWhatIsNoNews) {
  // More completions than a waiter checks before it would sleep. One queue of the device has room
  // for them and for those of another pair.
  const uint32_t posted = a().attributes().max_requests_per_queue / 4 * 3;
  Inbox inbox(a());
  EndOptions many;
  many.shared_inbox = &inbox;
  many.max_sends = many.max_receives = posted;
  End& gone = NewEnd(a(), many);
  End& left = NewEnd(b());
  EndOptions few;
  few.shared_inbox = &inbox;
  End& to = NewEnd(a(), few);
  End& from = NewEnd(b());
  Connect(gone, left);
  Connect(from, to);
  for (uint32_t id = 0; id < posted; ++id) ASSERT_EQ(gone.Receive(id, 0, 8), PostResult::kOk);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  rdma_mock::ShowNoCompletions(true);
  gone.pair().Disconnect(DisconnectMode::kAbrupt);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  inbox.Poll();
  inbox.got().clear();
  BusyControlThread busy;  // otherwise that thread would poll the queue too
  rdma_mock::ShowNoCompletions(false);
  const uint32_t wakes = inbox.queue().wakes();
  EXPECT_EQ(inbox.queue().Wait(Deadline::After(a().executor(), Nanos{5'000'000'000}), wakes),
            WaitResult::kReady);
  busy.LetGo();
  Expect(inbox, 1);
}

// The memory for frames comes with the connection.
TEST_F(MishapsTest, ASendNeedsNoMemory) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ConnectAs(from, to,
            a().attributes().immediate_data ? ImmediateForm::kNative : ImmediateForm::kFramed);
  rdma_mock::LimitRegistrations(0);
  ASSERT_EQ(to.Receive(1, 0, 1000), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 1000), PostResult::kOk);
  Expect(from.sends(), 2);
  EXPECT_EQ(Expect(to.receives(), 1).length, 1000u);
}

// The slot for a frame and the memory behind it hold more than that memory alone.
TEST_F(MishapsTest, AMessageWithoutAFrameMayFillTheSlotOfOne) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  drops.memory = 80'000;
  End& to = NewEnd(a(), drops);
  EndOptions large;
  large.memory = 80'000;
  End& from = NewEnd(b(), large);
  ConnectAs(to, from, ImmediateForm::kNone, /*may_frame=*/true);
  ASSERT_EQ(to.Receive(1, 0, 80'000), PostResult::kOk);
  ASSERT_EQ(to.Receive(2, 0, 80'000), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 65536), PostResult::kOk);
  Expect(from.sends(), 3);
  EXPECT_EQ(Expect(to.receives(), 1).length, 65536u);
  if (!a().attributes().immediate_data) {
    ASSERT_EQ(from.Send(4, 0, 65548), PostResult::kOk);
    Expect(to.receives(), 2, Status::kLocalLength);
  }
}

// With frames the receive would need memory of our own, which takes a system call. During that call
// the peer says that there will be no frames.
TEST_F(MishapsTest, FramesMayBeDeclinedWhileAReceiveIsPosted) {
  constexpr size_t kSegments = 16;  // as many as the device takes
  static std::promise<void>* decided;
  EndOptions many;
  many.max_segments = kSegments;
  End& to = NewEnd(a(), many);
  End& from = NewEnd(b());
  std::promise<void> connected, may_go_on;
  decided = &may_go_on;
  to.events().hook = [&](const Event&) {
    connected.set_value();
    decided->get_future().wait_for(std::chrono::seconds(10));
  };
  const auto request = Ask(to, b(), /*may_frame=*/true);
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(from.pair(), {}).ok());
  connected.get_future().wait();
  rdma_mock::MeanwhileInMemory([] {
    rdma_mock::MeanwhileInMemory(nullptr);
    decided->set_value();
    (*ControlThread::Get())->Drain();
  });
  ASSERT_EQ(to.Receive(1, Pieces(to, kSegments, 16, 4)), PostResult::kOk);
  if (a().attributes().immediate_data) decided->set_value();  // such a device has no frames
  EXPECT_EQ(AwaitEvent(to).kind, Event::kConnected);
  to.events().hook = nullptr;
  EXPECT_EQ(AwaitEvent(from).kind, Event::kConnected);
  from.Put(0, Pattern(4 * kSegments, 3));
  ASSERT_EQ(from.Send(2, 0, 4 * kSegments), PostResult::kOk);
  Expect(from.sends(), 2);
  EXPECT_EQ(Expect(to.receives(), 1).length, 4 * kSegments);
  for (size_t i = 0; i < kSegments; ++i) EXPECT_EQ(to.Get(16 * i, 4), from.Get(4 * i, 4)) << i;
}

// Messages that may be dropped land in buffers of our own, in turn. If the device refuses the
// receive for one buffer, the order changes.
TEST_F(MishapsTest, NoMessageIsTakenForAnother) {
  constexpr size_t kBytes = 64, kMessages = 40;
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a(), drops);
  End& to = NewEnd(b(), drops);
  Connect(from, to);
  for (size_t i = 0; i < kMessages; ++i) {
    if (i == 3) rdma_mock::RefuseReceives(1);
    from.Put(0, Pattern(kBytes, static_cast<int>(i)));
    ASSERT_EQ(to.Receive(i, i * kBytes, kBytes), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, kBytes), PostResult::kOk);
    const Completion sent = Await(from.sends());
    const Completion received = Await(to.receives());
    if (received.status != Status::kSuccess || sent.status != Status::kSuccess) break;
    ASSERT_EQ(to.Get(i * kBytes, kBytes), Pattern(kBytes, static_cast<int>(i))) << i;
  }
  ExpectDisconnected(to, DisconnectCause::kBroken);
}

// Even if the queue holds flushed receives of the connection before, which nobody has polled.
TEST_F(MishapsTest, NothingIsReceivedBeforeOnConnected) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Forget(to);
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  from.pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(to, DisconnectCause::kPeer);
  from.pair().Reset();
  to.pair().Reset();
  ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);

  // The side that has dialled is the first to be notified of the connection.
  from.events().hook = [&](const Event&) {
    EXPECT_EQ(from.Send(3, 0, 8), PostResult::kOk);
    CompletionQueue& queue = to.receives().queue();
    queue.Wait(Deadline::After(b().executor(), 0), queue.wakes());  // takes what has come
  };
  std::vector<uint64_t> early;
  to.events().hook = [&](const Event&) {
    Completion got[4];
    const int count = to.receives().queue().Poll(got, 4);
    for (int i = 0; i < count; ++i) early.push_back(got[i].id);
  };
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(to.pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(to).kind, Event::kConnected);
  DrainExecutors();
  from.events().hook = to.events().hook = nullptr;
  EXPECT_EQ(early, std::vector<uint64_t>{1});
  Expect(from.sends(), 3);
  Expect(to.receives(), 2);
}

// libbnxt_re and libocrdma take no requests after a completion that failed; here the connection is
// about to end.
TEST_F(MishapsTest, WhatIsRefusedBehindAFailureIsFlushed) {
  EndOptions breaks;
  breaks.no_receive = NoReceive::kBreak;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), breaks);
  Connect(from, to);
  BusyControlThread busy;
  EXPECT_EQ(from.Send(1, 0, 8), PostResult::kOk);  // for which there is no receive
  while (from.sends().got().empty()) from.sends().Poll();
  rdma_mock::RefuseSendsAfter(0);
  EXPECT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  busy.LetGo();
  EXPECT_NE(Await(from.sends()).status, Status::kSuccess);
  Expect(from.sends(), 2, Status::kFlushed);
}

}  // namespace
}  // namespace viaduct::verbs
