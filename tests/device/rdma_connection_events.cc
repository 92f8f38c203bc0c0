// What rdma_cm reports of an RDMA device's connections: late, twice, out of order, and when no such
// event is expected.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/asked.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/mishaps.h"
#include "tests/rdma_mock/told.h"
#include "verbs/base/busy_control_thread.h"

namespace viaduct::verbs {
namespace {

// Longer than the time to the first of kNudges, which are sent over siw (verbs/rdma/patience.h).
constexpr std::chrono::milliseconds kBeyondTheFirstNudge(150);

using rdma_mock::IdEvent;
using rdma_mock::Ids;
using rdma_mock::TellIds;

class ConnectionEventsTest : public LeavesNothingTest {
 protected:
  void SetUp() override {
    LeavesNothingTest::SetUp();
    from_ = &NewEnd(a());
    to_ = &NewEnd(b());
    endless_ = rdma_mock::AskedEndlessCalls();
  }
  void TearDown() override {
    LeavesNothingTest::TearDown();
    EXPECT_EQ(rdma_mock::AskedEndlessCalls(), endless_);
  }

  void ExpectMessage() {
    ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
    Expect(to_->receives(), 1);
    Expect(from_->sends(), 2);
  }
  // The pairs are in error, or idle.
  void ExpectWholeLife() {
    for (End* end : {from_, to_}) {
      end->pair().Flush();
      end->pair().Reset();
      PollEnds();
      end->sends().got().clear();
      end->receives().got().clear();
      EXPECT_EQ(end->events().count(), 0u);
    }
    Connect(*from_, *to_);
    ExpectMessage();
  }
  // Accepts a connection whose confirmation by the peer is lost; on iWARP, its first message.
  void AcceptUnconfirmed() {
    const auto request = Ask(*from_, b());
    ASSERT_NE(request, nullptr);
    rdma_mock::LoseConfirmations(1);
    ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
    ASSERT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
  }

  End* from_ = nullptr;
  End* to_ = nullptr;

 private:
  int endless_ = 0;
};

// In a bond, one interface may take the place of another.
TEST_F(ConnectionEventsTest, AnAddressThatChangesEndsNothing) {
  const auto request = Ask(*from_, b());
  ASSERT_NE(request, nullptr);
  const auto change = [this] {
    for (Ids ids : {Ids::kDialling, Ids::kRequested, Ids::kListening}) {
      TellIds(ids, IdEvent::kAddrChange);
      TellIds(ids, IdEvent::kTimewaitExit);
    }
    DrainExecutors();
  };
  change();
  ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  EXPECT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
  change();
  ExpectMessage();
  from_->pair().Disconnect(DisconnectMode::kAbrupt);
  change();
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
  ExpectWholeLife();
}

// On iWARP the accepting side may not end anything before the peer's first message: the kernel
// would wait for that message.
TEST_F(ConnectionEventsTest, AnAcceptOfWhichThePeerSaysNothingWaitsForIt) {
  for (const bool given_up : {true, false}) {
    AcceptUnconfirmed();
    if (given_up) to_->pair().Disconnect(DisconnectMode::kAbrupt);
    DrainExecutors();
    TellIds(Ids::kRequested, IdEvent::kAddrChange);
    TellIds(Ids::kRequested, IdEvent::kUnreachable);
    DrainExecutors();
    Settle();
    if (rdma_mock::IsIwarp()) {
      EXPECT_EQ(rdma_mock::LivePairs(), 2) << "of one that is to stay";
      from_->pair().Disconnect(DisconnectMode::kAbrupt);
    } else {
      ExpectDisconnected(*from_, DisconnectCause::kPeer);
    }
    if (!given_up) {
      EXPECT_EQ(AwaitEvent(*to_).outcome, ConnectOutcome::kGone);
    }
    EXPECT_TRUE(AwaitPairs(0));
    ExpectWholeLife();
    from_->pair().Disconnect(DisconnectMode::kAbrupt);
    ExpectDisconnected(*to_, DisconnectCause::kPeer);
    from_->pair().Reset();
    to_->pair().Reset();
    EXPECT_TRUE(AwaitPairs(0));
  }
}

// Nobody polls, and the device has reported the message before there was a connection.
TEST_F(ConnectionEventsTest, TheSinkHearsOfAMessageThatCameBeforeTheNews) {
  if (rdma_mock::IsIwarp()) GTEST_SKIP() << "there it is the message that says so";
  CompletionCounter counter;
  EndOptions options;
  options.sink = &counter;
  to_ = &NewEnd(b(), options);
  Forget(*to_);
  ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
  AcceptUnconfirmed();
  ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
  Expect(from_->sends(), 2);
  for (int i = 0; i < 10; ++i) DrainExecutors();
  EXPECT_EQ(counter.calls, 0);
  TellIds(Ids::kRequested, IdEvent::kEstablished);
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  EXPECT_TRUE(Run([&] { return counter.calls != 0; }));
  Expect(to_->receives(), 1);
  DestroyEnds();  // before the sink
}

// The connection manager may report the end before the failure is known. For a program that polls
// nobody waits for the device's own report of completions.
TEST_F(ConnectionEventsTest, AFailureThatNobodyHasSeenIsTheCauseOfTheEnd) {
  ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
  Connect(*from_, *to_);
  Forget(*to_);
  BusyControlThread busy;
  to_->receives().Poll();
  ASSERT_EQ(from_->Send(2, 0, 16), PostResult::kOk);
  from_->pair().Disconnect(DisconnectMode::kAbrupt);
  busy.LetGo();
  ExpectBroken(*to_);
  Expect(to_->receives(), 1, Status::kLocalLength);
}

// If there was no connection, receives stay posted even if the peer has sent to them.
TEST_F(ConnectionEventsTest, AMessageOfAConnectionThatNeverWasIsNone) {
  to_->DestroyPair();
  for (const NoReceive policy : {NoReceive::kHold, NoReceive::kDrop}) {
    for (const bool given_up : {true, false}) {
      EndOptions options;
      options.no_receive = policy;
      to_ = &NewEnd(b(), options);
      ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
      ASSERT_EQ(to_->Receive(2, 8, 8), PostResult::kOk);
      AcceptUnconfirmed();
      for (int id : {3, 4}) {
        from_->Put(0, Pattern(8, id));
        ASSERT_EQ(from_->Send(id, 0, 8), PostResult::kOk);
        Expect(from_->sends(), id);
      }
      PollEnds();
      DrainExecutors();
      if (given_up) {
        to_->pair().Disconnect(DisconnectMode::kAbrupt);
      } else {
        TellIds(Ids::kRequested, IdEvent::kUnreachable, -ETIMEDOUT);
        EXPECT_EQ(AwaitEvent(*to_).outcome, ConnectOutcome::kGone);
      }
      from_->pair().Disconnect(DisconnectMode::kAbrupt);
      from_->pair().Reset();
      EXPECT_TRUE(AwaitPairs(0));
      PollEnds();
      EXPECT_TRUE(to_->receives().got().empty());
      EXPECT_EQ(to_->pair().open_receives(), 2u);
      while (from_->events().Take().kind != Event::kNone) {
      }
      Connect(*from_, *to_);
      for (int id : {1, 2}) {
        from_->Put(0, Pattern(8, id));
        ASSERT_EQ(from_->Send(id, 0, 8), PostResult::kOk);
        Expect(from_->sends(), id);
        EXPECT_EQ(Expect(to_->receives(), id).length, 8u);
        EXPECT_EQ(to_->Get(8 * (id - 1), 8), Pattern(8, id));
      }
      from_->pair().Disconnect(DisconnectMode::kAbrupt);
      ExpectDisconnected(*to_, DisconnectCause::kPeer);
      from_->pair().Reset();
    }
  }
}

// Receives that came from a shared queue do not stay posted.
TEST_F(ConnectionEventsTest, OfASharedQueueItTakesAReceiveThatIsFlushed) {
  SharedReceiveOptions shared;
  shared.domain = &to_->domain();
  shared.max_receives = 2;
  auto queue = b().CreateSharedReceiveQueue(shared);
  ASSERT_TRUE(queue.ok()) << queue.status();
  EndOptions options;
  options.domain = &to_->domain();
  options.shared_receives = queue->get();
  const Segment segment = to_->At(0, 8);
  to_ = &NewEnd(b(), options);
  ReceiveRequest request;
  request.segments = absl::MakeConstSpan(&segment, 1);
  for (uint64_t id : {1, 2}) {
    request.id = id;
    ASSERT_EQ((*queue)->PostReceive(request), PostResult::kOk);
  }
  AcceptUnconfirmed();
  ASSERT_EQ(from_->Send(3, 0, 8), PostResult::kOk);
  PollEnds();
  EXPECT_TRUE(to_->receives().got().empty());
  to_->pair().Disconnect(DisconnectMode::kAbrupt);
  Expect(to_->receives(), 1, Status::kFlushed);
  EXPECT_EQ((*queue)->available(), 1u);
  EXPECT_EQ((*queue)->outstanding(), 1u);
  DestroyEnds();
}

// Linux reports kUnreachable of a connection when a neighbour on the path has changed its address.
// The peer knows nothing of this.
TEST_F(ConnectionEventsTest, WhoLosesTheWayTellsThePeerAgain) {
  Connect(*from_, *to_);
  if (!rdma_mock::IsIwarp()) rdma_mock::LoseDisconnects(1);
  TellIds(Ids::kDialling, IdEvent::kUnreachable, -ETIMEDOUT);
  ExpectDisconnected(*from_, DisconnectCause::kBroken);
  if (!rdma_mock::IsIwarp()) {
    for (int i = 0; i < 10; ++i) DrainExecutors();
    TellIds(Ids::kDialling, IdEvent::kUnreachable, -ETIMEDOUT);
    for (int i = 0; i < 10; ++i) DrainExecutors();
    EXPECT_EQ(to_->events().count(), 0u);
    rdma_mock::RepeatDisconnects();
  }
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
  ExpectWholeLife();
}

TEST_F(ConnectionEventsTest, AConnectionBeginsOnce) {
  Connect(*from_, *to_);
  const int before = rdma_mock::AskedEmptyWrites();
  if (rdma_mock::IsSiw()) {
    ASSERT_TRUE(Run([&] { return rdma_mock::AskedEmptyWrites() == before + 2; }));
  }
  for (Ids ids : {Ids::kDialling, Ids::kRequested}) TellIds(ids, IdEvent::kEstablished);
  Settle();
  Settle();
  EXPECT_EQ(rdma_mock::AskedEmptyWrites(), before + (rdma_mock::IsSiw() ? 2 : 0));
  EXPECT_EQ(from_->events().count() + to_->events().count(), 0u);
  ExpectMessage();
}

TEST_F(ConnectionEventsTest, AConnectionEndsOnce) {
  for (const DisconnectMode mode : {DisconnectMode::kAbrupt, DisconnectMode::kGraceful}) {
    Connect(*from_, *to_);
    ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
    from_->pair().Disconnect(mode);
    for (int i = 0; i < 2; ++i) {
      for (Ids ids : {Ids::kDialling, Ids::kRequested}) TellIds(ids, IdEvent::kDisconnected);
      TellIds(Ids::kDialling, IdEvent::kTimewaitExit);
    }
    if (mode == DisconnectMode::kGraceful) {
      EXPECT_EQ(AwaitEvent(*from_).kind, Event::kDisconnected);
    }
    ExpectDisconnected(*to_, DisconnectCause::kPeer);
    Expect(to_->receives(), 1, Status::kFlushed);
    ExpectWholeLife();
    from_->pair().Disconnect(DisconnectMode::kAbrupt);
    ExpectDisconnected(*to_, DisconnectCause::kPeer);
    from_->pair().Reset();
    to_->pair().Reset();
  }
}

// Whichever event ends an attempt, it ends once, and the peer, which has the request, is notified.
TEST_F(ConnectionEventsTest, AnAttemptFailsOnceWhateverIsTold) {
  struct Told {
    IdEvent event;
    int status;
  };
  std::vector<Told> all = {{IdEvent::kDisconnected, 0},    {IdEvent::kDeviceRemoval, 0},
                           {IdEvent::kConnectResponse, 0}, {IdEvent::kMulticastError, -EINVAL},
                           {IdEvent::kRouteError, 0},      {IdEvent::kRouteError, -ETIMEDOUT}};
  for (IdEvent event :
       {IdEvent::kUnreachable, IdEvent::kRejected, IdEvent::kConnectError, IdEvent::kAddrError}) {
    // Error numbers, reasons of an InfiniBand reject, and values that are neither.
    for (int status : {-ETIMEDOUT, -ECONNRESET, -ECONNREFUSED, -EHOSTUNREACH, -ENOMEM, -EINVAL, 0,
                       1, 8, 28, 29, 1000}) {
      all.push_back({event, status});
    }
  }
  for (const Told& told : all) {
    SCOPED_TRACE(static_cast<int>(told.event));
    SCOPED_TRACE(told.status);
    const auto request = Ask(*from_, b());
    ASSERT_NE(request, nullptr);
    for (int i = 0; i < 2; ++i) TellIds(Ids::kDialling, told.event, told.status);
    EXPECT_EQ(AwaitEvent(*from_).kind, Event::kConnectFailed);
    ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
    const Event accepted = AwaitEvent(*to_);
    if (accepted.kind == Event::kConnected) {
      ExpectDisconnected(*to_, DisconnectCause::kPeer);
    } else {
      EXPECT_EQ(accepted.outcome, ConnectOutcome::kGone);
    }
    DrainExecutors();
    for (End* end : {from_, to_}) {
      EXPECT_EQ(end->events().count(), 0u);
      end->pair().Reset();
    }
  }
  ExpectWholeLife();
}

// No such event is expected once a connection is established; if one comes, the connection ends.
TEST_F(ConnectionEventsTest, ALateFailureEndsTheConnectionOnce) {
  for (const IdEvent event :
       {IdEvent::kAddrError, IdEvent::kRouteError, IdEvent::kConnectError, IdEvent::kRejected,
        IdEvent::kConnectResponse, IdEvent::kDeviceRemoval}) {
    SCOPED_TRACE(static_cast<int>(event));
    Connect(*from_, *to_);
    ASSERT_EQ(from_->Receive(1, 0, 8), PostResult::kOk);
    for (int i = 0; i < 2; ++i) TellIds(Ids::kDialling, event, -ETIMEDOUT);
    ExpectDisconnected(*from_, DisconnectCause::kBroken);
    ExpectDisconnected(*to_, DisconnectCause::kPeer);
    Expect(from_->receives(), 1, Status::kFlushed);
    DrainExecutors();
    for (End* end : {from_, to_}) {
      EXPECT_EQ(end->events().count(), 0u);
      end->pair().Reset();
    }
  }
  ExpectWholeLife();
}

TEST_F(ConnectionEventsTest, AListenerHearsOfRequestsOnly) {
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  for (const IdEvent event :
       {IdEvent::kAddrError, IdEvent::kConnectError, IdEvent::kRejected, IdEvent::kEstablished,
        IdEvent::kDisconnected, IdEvent::kDeviceRemoval, IdEvent::kMulticastError}) {
    TellIds(Ids::kListening, event, -EIO);
  }
  ASSERT_TRUE(Dial(*from_, b(), (*listener)->port()).ok());
  const auto request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  ExpectMessage();
}

// A sequence of up to kMost connect requests, in which each one causes the next.
class Flood final : public ListenerSink {
 public:
  static constexpr int kMost = 2000;

  explicit Flood(Context& context) : context_(context) {}
  void Begin() {
    auto listener = context_.Listen(0, this);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    rdma_mock::TellRequest(listener_->port());
  }
  void OnRequest(std::unique_ptr<IncomingConnection>) override {
    if (++count_ == 1) context_.executor().Post([this] { count_at_task_ = count_.load(); });
    if (count_ < kMost) rdma_mock::TellRequest(listener_->port());
  }
  int count() const { return count_; }
  // The count at the time when the task ran that the first request had posted.
  int count_at_task() const { return count_at_task_; }

 private:
  Context& context_;
  std::unique_ptr<Listener> listener_;
  std::atomic<int> count_{0};
  std::atomic<int> count_at_task_{0};
};

TEST_F(ConnectionEventsTest, AFloodOfRequestsLetsOthersHaveTheirTurn) {
  constexpr int kAtOnce = 64;
  Flood flood(b());
  ASSERT_NO_FATAL_FAILURE(flood.Begin());
  ASSERT_TRUE(Run([&] { return flood.count() == Flood::kMost && flood.count_at_task() != 0; }));
  EXPECT_LE(flood.count_at_task(), kAtOnce);
}

// Ends another listener at the first request, so that the rest is read ahead. Keeps all requests,
// because the end of a request makes its device read ahead, too.
class ReadAheadSink final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    other.reset();
    requests.OnRequest(std::move(request));
  }
  std::unique_ptr<Listener> other;
  Requests requests;
};

TEST_F(ConnectionEventsTest, WhatWasReadAheadIsToldAlthoughItIsMuch) {
  constexpr size_t kMany = 300;
  Requests none;
  ReadAheadSink sink;
  auto other = b().Listen(0, &none);
  auto listener = b().Listen(0, &sink);
  ASSERT_TRUE(other.ok() && listener.ok());
  sink.other = *std::move(other);
  {
    BusyControlThread busy;
    for (size_t i = 0; i < kMany; ++i) rdma_mock::TellRequest((*listener)->port());
    busy.LetGo();
  }
  EXPECT_TRUE(Run([&] { return sink.requests.count() == kMany; })) << sink.requests.count();
}

// A hardware driver may take its time to destroy a pair, and meanwhile events come for the id.
TEST_F(ConnectionEventsTest, AnIdThatIsBeingDestroyedTellsNobody) {
  const bool waits = rdma_mock::IsIwarp() && !rdma_mock::IsSiw();
  Connect(*from_, *to_);
  if (waits) rdma_mock::HoldPairs(true);
  from_->pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
  for (int i = 0; i < 3; ++i) {
    for (const IdEvent event : {IdEvent::kDisconnected, IdEvent::kTimewaitExit,
                                IdEvent::kEstablished, IdEvent::kDeviceRemoval}) {
      for (Ids ids : {Ids::kDialling, Ids::kRequested}) TellIds(ids, event);
    }
    DrainExecutors();
  }
  rdma_mock::HoldPairs(false);
  EXPECT_TRUE(AwaitPairs(0));
  ExpectWholeLife();
}

// What the begin of a connection has scheduled for later must not reach a connection that is gone.
TEST_F(ConnectionEventsTest, ABeginningBehindTheEndLeavesNothing) {
  Connect(*from_, *to_);
  BusyControlThread busy;
  for (const IdEvent event : {IdEvent::kDisconnected, IdEvent::kEstablished}) {
    TellIds(Ids::kDialling, event);
  }
  busy.LetGo();
  ExpectDisconnected(*from_, DisconnectCause::kPeer);
  EXPECT_TRUE(AwaitPairs(0));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Run([&] { return std::chrono::steady_clock::now() - begin > kBeyondTheFirstNudge; }));
  AwaitEvent(*to_);
  ExpectWholeLife();
}

}  // namespace
}  // namespace viaduct::verbs
