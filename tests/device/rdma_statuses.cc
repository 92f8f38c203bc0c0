// The statuses with which an RDMA device may complete each kind of request, and what becomes of the
// requests before and after it.
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/mishaps.h"
#include "tests/rdma_mock/told.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/clock.h"

namespace viaduct::verbs {
namespace {

using rdma_mock::Work;
using rdma_mock::WorkStatus;

std::vector<WorkStatus> Failures() {
  std::vector<WorkStatus> all;
  for (int i = 1; i <= static_cast<int>(WorkStatus::kGeneralErr); ++i) {
    all.push_back(static_cast<WorkStatus>(i));
  }
  return all;
}

Status OfRequest(WorkStatus status) {
  switch (status) {
    case WorkStatus::kWrFlushErr:
      return Status::kFlushed;
    case WorkStatus::kLocLenErr:
      return Status::kLocalLength;
    case WorkStatus::kLocProtErr:
    case WorkStatus::kLocAccessErr:
    case WorkStatus::kMwBindErr:
      return Status::kLocalProtection;
    case WorkStatus::kRemAccessErr:
      return Status::kRemoteAccess;
    case WorkStatus::kRemInvReqErr:
    case WorkStatus::kRemOpErr:
      return Status::kRemoteOperation;
    case WorkStatus::kRnrRetryExcErr:
      return Status::kReceiverNotReady;
    default:
      return Status::kTransport;
  }
}

// rxe (Linux 6.1) reports the wrong length of a receive as an invalid request, and its wrong memory
// as an operation error of this side.
bool IsOfMemory(WorkStatus status) {
  return status == WorkStatus::kLocProtErr || status == WorkStatus::kLocAccessErr ||
         status == WorkStatus::kLocQpOpErr || status == WorkStatus::kRemAccessErr;
}
bool IsOfLength(WorkStatus status) {
  return status == WorkStatus::kLocLenErr || status == WorkStatus::kRemInvReqErr ||
         status == WorkStatus::kRemOpErr;
}

class StatusesTest : public LeavesNothingTest {
 protected:
  static constexpr uint32_t kSegments = 40;  // more than the device takes at once

  void SetUp() override {
    LeavesNothingTest::SetUp();
    EndOptions many;
    many.max_segments = kSegments;
    many.max_sends = 16;
    from_ = &NewEnd(a(), many);
    to_ = &NewEnd(b(), many);
  }
  // The connection ends on both sides, and all that was posted has completed once.
  void ExpectEnd(bool flushed_alone) {
    // On iWARP only the connection manager reports an end that flushes.
    if (flushed_alone && rdma_mock::IsIwarp()) {
      rdma_mock::TellIds(rdma_mock::Ids::kDialling, rdma_mock::IdEvent::kDisconnected);
    }
    for (End* end : {from_, to_}) EXPECT_EQ(AwaitEvent(*end).kind, Event::kDisconnected);
    EXPECT_TRUE(Run([&] {
      return from_->pair().SendIdle() && from_->pair().open_receives() == 0 &&
             to_->pair().SendIdle() && to_->pair().open_receives() == 0;
    }));
    PollEnds();
    DrainExecutors();
    for (End* end : {from_, to_}) {
      EXPECT_EQ(end->events().count(), 0u);
      end->pair().Reset();
    }
  }

  SendRequest Request(Opcode opcode, uint64_t id, const std::vector<Segment>& segments,
                      uint16_t flags) {
    SendRequest request;
    request.id = id;
    request.opcode = opcode;
    request.flags = flags;
    request.segments = segments;
    request.remote_address = to_->Address(4096);
    request.remote_key = to_->region().key();
    return request;
  }

  End* from_ = nullptr;
  End* to_ = nullptr;
};

struct Kind {
  const char* name;
  Opcode opcode;
  Work work;
  uint32_t segments;
  uint16_t flags;
  int before;  // how many of the device's requests for it succeed first
};

constexpr Kind kKinds[] = {
    {"send", Opcode::kSend, Work::kSend, 1, 0, 0},
    {"suppressed send", Opcode::kSend, Work::kSend, 1, kSuppress, 0},
    {"gathered send", Opcode::kSend, Work::kSend, 40, 0, 0},
    {"write", Opcode::kWrite, Work::kWrite, 1, 0, 0},
    {"empty write", Opcode::kWrite, Work::kWrite, 0, 0, 0},
    {"split write", Opcode::kWrite, Work::kWrite, 40, 0, 1},
    {"read", Opcode::kRead, Work::kRead, 1, 0, 0},
    {"empty read", Opcode::kRead, Work::kRead, 0, 0, 0},
    {"split read", Opcode::kRead, Work::kRead, 40, 0, 2},
    // On iWARP the device's request that fails is the one after it, a read or a frame.
    {"confirmed send", Opcode::kSend, Work::kSend, 1, kConfirm, 0},
    {"confirmed write", Opcode::kWrite, Work::kWrite, 1, kConfirm, 0},
    {"write with a value", Opcode::kWrite, Work::kWrite, 1, kImmediate, 0},
};

// The request before the failing one succeeds, and what follows it is flushed.
TEST_F(StatusesTest, EachOfEachRequest) {
  for (const Kind& kind : kKinds) {
    for (WorkStatus status : Failures()) {
      SCOPED_TRACE(kind.name + (", status " + std::to_string(static_cast<int>(status))));
      const bool immediate = (kind.flags & kImmediate) != 0;
      const bool confirmed = (kind.flags & kConfirm) != 0;
      immediate ? ConnectWithImmediate(*from_, *to_) : Connect(*from_, *to_);
      for (int id : {10, 11, 12}) ASSERT_EQ(to_->Receive(id, 0, 64), PostResult::kOk);
      ASSERT_EQ(from_->Send(0, 0, 8), PostResult::kOk);
      Expect(from_->sends(), 0);
      Expect(to_->receives(), 10);
      const std::vector<Segment> segments(kind.segments, from_->At(0, 1));
      Work work = kind.work;
      if (rdma_mock::IsIwarp() && immediate) work = Work::kSend;
      if (rdma_mock::IsIwarp() && confirmed) work = Work::kRead;
      rdma_mock::FailWork(work, status, kind.before);
      // Neither completion is read before both requests are posted.
      BusyControlThread busy;
      ASSERT_EQ(from_->pair().PostSend(Request(kind.opcode, 1, segments, kind.flags)),
                PostResult::kOk);
      ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
      busy.LetGo();
      Status expected = OfRequest(status);
      // On iWARP a flushed read was not answered, even if it was posted only to confirm.
      if (expected == Status::kFlushed && work == Work::kRead && rdma_mock::IsIwarp()) {
        expected = Status::kTransport;
      }
      Expect(from_->sends(), 1, expected);
      Expect(from_->sends(), 2, Status::kFlushed);
      ExpectEnd(expected == Status::kFlushed || expected == Status::kTransport);
      const bool arrived = work == Work::kRead && kind.opcode == Opcode::kSend;
      Expect(to_->receives(), 11, arrived ? Status::kSuccess : Status::kFlushed);
      Expect(to_->receives(), 12, Status::kFlushed);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(StatusesTest, EachOfABind) {
  if (!a().attributes().pair_windows) GTEST_SKIP() << "windows are registrations";
  for (WindowScope scope : {WindowScope::kDomain, WindowScope::kQueuePair}) {
    for (WorkStatus status : Failures()) {
      SCOPED_TRACE(static_cast<int>(status));
      Connect(*from_, *to_);
      auto window = a().CreateWindow(from_->domain(), scope);
      ASSERT_TRUE(window.ok()) << window.status();
      BindRequest bind;
      bind.id = 1;
      bind.window = window->get();
      bind.region = from_->region().key();
      bind.address = from_->Address(0);
      bind.length = 100;
      bind.access = kRemoteRead | kRemoteWrite;
      Key key = 0;
      rdma_mock::FailWork(Work::kBind, status);
      ASSERT_EQ(from_->pair().PostBind(bind, &key), PostResult::kOk);
      Expect(from_->sends(), 1, OfRequest(status));
      ExpectEnd(false);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_EQ(rdma_mock::LiveWindows(), 0);
}

// A status that says nothing about the receive's memory is not reported as an error of its memory.
TEST_F(StatusesTest, EachOfAReceive) {
  for (const uint32_t pieces : {1u, kSegments}) {
    for (WorkStatus status : Failures()) {
      SCOPED_TRACE(static_cast<int>(status));
      Connect(*from_, *to_);
      ASSERT_EQ(to_->Receive(1, std::vector<Segment>(pieces, to_->At(0, 8))), PostResult::kOk);
      ASSERT_EQ(to_->Receive(2, 0, 8), PostResult::kOk);
      rdma_mock::FailWork(Work::kReceive, status);
      ASSERT_EQ(from_->Send(3, 0, 8), PostResult::kOk);
      // Not every device can tell the two apart, and the receive's memory is as it should be.
      Status expected =
          IsOfMemory(status) || IsOfLength(status) ? Status::kLocalLength : Status::kTransport;
      if (status == WorkStatus::kWrFlushErr) expected = Status::kFlushed;
      Expect(to_->receives(), 1, expected);
      Expect(to_->receives(), 2, Status::kFlushed);
      Await(from_->sends());
      ExpectEnd(false);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// libcxgb4 calls both a wrong length; siw, rxe and mlx5 do not.
TEST_F(StatusesTest, AMessageThatReachesPastTheRegionIsNoWrongLengthOnIwarpAdapters) {
  if (!rdma_mock::IsIwarp() || rdma_mock::IsSiw()) GTEST_SKIP() << "no such device";
  Connect(*from_, *to_);
  Segment last = to_->At(to_->memory().size() - 8, 8);
  last.length = 64;
  ASSERT_EQ(to_->Receive(1, absl::MakeConstSpan(&last, 1)), PostResult::kOk);
  rdma_mock::FailWork(Work::kReceive, WorkStatus::kLocLenErr);
  ASSERT_EQ(from_->Send(2, 0, 16), PostResult::kOk);
  Expect(to_->receives(), 1, Status::kLocalProtection);
  Await(from_->sends());
  ExpectEnd(false);
}

TEST_F(StatusesTest, EachOfASharedReceive) {
  SharedReceiveOptions shared;
  shared.domain = &to_->domain();
  shared.max_receives = 4;
  auto queue = b().CreateSharedReceiveQueue(shared);
  ASSERT_TRUE(queue.ok()) << queue.status();
  EndOptions options;
  options.domain = &to_->domain();
  options.shared_receives = queue->get();
  End& memory = *to_;
  to_ = &NewEnd(b(), options);
  for (WorkStatus status : Failures()) {
    SCOPED_TRACE(static_cast<int>(status));
    Connect(*from_, *to_);
    const Segment segment = memory.At(0, 8);
    ReceiveRequest receive;
    receive.id = 1;
    receive.segments = absl::MakeConstSpan(&segment, 1);
    ASSERT_EQ((*queue)->PostReceive(receive), PostResult::kOk);
    rdma_mock::FailWork(Work::kReceive, status);
    ASSERT_EQ(from_->Send(3, 0, 8), PostResult::kOk);
    Status expected = Status::kTransport;
    if (IsOfLength(status)) expected = Status::kLocalLength;
    if (IsOfMemory(status)) expected = Status::kLocalProtection;
    if (status == WorkStatus::kWrFlushErr) expected = Status::kFlushed;
    Expect(to_->receives(), 1, expected);
    EXPECT_EQ((*queue)->outstanding(), 0u);
    Await(from_->sends());
    ExpectEnd(false);
    ASSERT_FALSE(HasFailure());
  }
  DestroyEnds();
}

// Under kDrop the memory that the device fails to fill is our own.
TEST_F(StatusesTest, EachOfAMessageThatMayBeDropped) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  to_ = &NewEnd(b(), drops);
  for (WorkStatus status : Failures()) {
    SCOPED_TRACE(static_cast<int>(status));
    Connect(*from_, *to_);
    ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
    rdma_mock::FailWork(Work::kReceive, status);
    ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
    Await(from_->sends());
    ExpectEnd(false);
    Expect(to_->receives(), 1, Status::kFlushed);
    ASSERT_FALSE(HasFailure());
  }
}

// A device's library may take a completion for an error of the poll, and find the rest later.
TEST_F(StatusesTest, APollThatFailsOrShowsLittleLosesNothing) {
  Connect(*from_, *to_);
  Forget(*to_);
  constexpr int kMessages = 16;
  for (int most : {-1, 1, 3}) {
    for (int id = 0; id < kMessages; ++id) ASSERT_EQ(to_->Receive(id, 0, 8), PostResult::kOk);
    if (most < 0) testing::internal::CaptureStderr();
    rdma_mock::ShowAtMost(most);
    for (int id = 0; id < kMessages; ++id) {
      while (from_->Send(id, 0, 8) == PostResult::kQueueFull) PollEnds();
    }
    rdma_mock::RingInVain();
    DrainExecutors();
    if (most < 0) {
      Completion none;
      EXPECT_EQ(to_->receives().queue().Poll(&none, 1), 0);
      rdma_mock::ShowAll();
      EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("ibv_poll_cq fails"));
    }
    for (int id = 0; id < kMessages; ++id) {
      CompletionQueue& queue = to_->receives().queue();
      Completion one;
      while (queue.Poll(&one, 1) == 0) {
        ASSERT_EQ(queue.Wait(Deadline::After(b().executor(), 10 * kNanosPerSecond), queue.wakes()),
                  WaitResult::kReady);
      }
      EXPECT_EQ(one.id, static_cast<uint64_t>(id));
      EXPECT_EQ(one.status, Status::kSuccess);
    }
    rdma_mock::ShowAll();
    for (int id = 0; id < kMessages; ++id) Expect(from_->sends(), id);
  }
}

// The sink is not called, and a waiter goes on waiting.
TEST_F(StatusesTest, NewsOfNothingIsNoNews) {
  Connect(*from_, *to_);
  CompletionQueue& queue = to_->receives().queue();
  for (int i = 0; i < 3; ++i) {
    BusyControlThread busy;
    rdma_mock::RingInVain();
    busy.LetGo();
    EXPECT_EQ(queue.Wait(Deadline::After(b().executor(), kNanosPerMilli), queue.wakes()),
              WaitResult::kTimedOut);
  }
  ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
  Expect(to_->receives(), 1);
}

// Peers whose messages are dropped may ring without end.
TEST_F(StatusesTest, NewsOfNothingDoesNotProlongAWait) {
  Connect(*from_, *to_);
  rdma_mock::RingWithoutEnd(true);
  CompletionQueue& queue = to_->receives().queue();
  EXPECT_EQ(queue.Wait(Deadline::After(b().executor(), kNanosPerMilli), queue.wakes()),
            WaitResult::kTimedOut);
}

}  // namespace
}  // namespace viaduct::verbs
