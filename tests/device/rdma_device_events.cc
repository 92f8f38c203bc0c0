// What an RDMA device reports by asynchronous events, at each stage of a connection's life.
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/mishaps.h"
#include "tests/rdma_mock/told.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/control_thread.h"
#include "verbs/rdma/open.h"

namespace viaduct::verbs {
namespace {

using rdma_mock::DeviceEvent;
using rdma_mock::TellOfDevice;

// The events that end the connection of a pair.
constexpr DeviceEvent kEnds[] = {DeviceEvent::kQpFatal, DeviceEvent::kQpReqErr,
                                 DeviceEvent::kQpAccessErr, DeviceEvent::kCqErr};

class DeviceEventsTest : public LeavesNothingTest {
 protected:
  void SetUp() override {
    LeavesNothingTest::SetUp();
    domain_ = *b().CreateDomain(/*wildcard=*/false);
    SharedReceiveOptions shared;
    shared.domain = domain_.get();
    shared.max_receives = 4;
    queue_ = *b().CreateSharedReceiveQueue(shared);
    MakeEnds();
  }
  void TearDown() override {
    DestroyEnds();
    queue_.reset();
    domain_.reset();
    LeavesNothingTest::TearDown();
  }
  void MakeEnds() {
    from_ = &NewEnd(a());
    EndOptions options;
    options.domain = domain_.get();
    options.shared_receives = queue_.get();
    to_ = &NewEnd(b(), options);
  }

  void Tell(DeviceEvent event) {
    TellOfDevice(event);
    // Drains the device's thread, and what it posts to itself.
    for (int i = 0; i < 3; ++i) DrainExecutors();
  }
  void ExpectMessage() {
    const Segment segment = to_->At(0, 8);
    ReceiveRequest request;
    request.id = 1;
    request.segments = absl::MakeConstSpan(&segment, 1);
    ASSERT_EQ(queue_->PostReceive(request), PostResult::kOk);
    ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
    Expect(to_->receives(), 1);
    Expect(from_->sends(), 2);
  }
  std::unique_ptr<IncomingConnection> AcceptUnconfirmed() {
    auto request = Ask(*from_, b());
    if (request == nullptr) return nullptr;
    rdma_mock::LoseConfirmations(1);
    EXPECT_TRUE(request->Accept(to_->pair(), {}).ok());
    EXPECT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
    return request;
  }

  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<SharedReceiveQueue> queue_;
  End* from_ = nullptr;
  End* to_ = nullptr;
};

TEST_F(DeviceEventsTest, WhatEndsNothingChangesNothing) {
  constexpr DeviceEvent kNothing[] = {DeviceEvent::kCommEst,   DeviceEvent::kSrqLimitReached,
                                      DeviceEvent::kPortErr,   DeviceEvent::kPortActive,
                                      DeviceEvent::kLidChange, DeviceEvent::kPkeyChange,
                                      DeviceEvent::kGidChange};
  for (DeviceEvent event : kNothing) Tell(event);
  const auto request = Ask(*from_, b());
  ASSERT_NE(request, nullptr);
  for (DeviceEvent event : kNothing) Tell(event);
  ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  for (DeviceEvent event : kNothing) Tell(event);
  ExpectMessage();
  from_->pair().Disconnect(DisconnectMode::kAbrupt);
  for (DeviceEvent event : kNothing) Tell(event);
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
}

TEST_F(DeviceEventsTest, AConnectionWhosePairHasFailedIsBroken) {
  for (DeviceEvent event : kEnds) {
    Connect(*from_, *to_);
    ASSERT_EQ(from_->Receive(1, 0, 8), PostResult::kOk);
    BusyControlThread busy;  // so that both get the event before either notifies the other
    for (int i = 0; i < 3; ++i) TellOfDevice(event);
    busy.LetGo();
    for (End* end : {from_, to_}) {
      if (event == DeviceEvent::kQpAccessErr) {
        EXPECT_EQ(AwaitEvent(*end).kind, Event::kRefusedWrite);
      }
      ExpectBroken(*end);
    }
    Expect(from_->receives(), 1, Status::kFlushed);
    DrainExecutors();
    for (End* end : {from_, to_}) {
      EXPECT_EQ(end->events().count(), 0u);
      end->pair().Reset();
    }
  }
  Connect(*from_, *to_);
  ExpectMessage();
}

// The device may report only of the queue, and not of the pairs, that nothing completes any more.
TEST_F(DeviceEventsTest, AFailedSharedQueueBreaksThoseThatReceiveFromIt) {
  Connect(*from_, *to_);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Tell(DeviceEvent::kSrqErr);
  ExpectBroken(*to_);
  EXPECT_EQ(AwaitEvent(*from_).kind, Event::kDisconnected);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
  Expect(from.sends(), 2);
}

// Only this host's device has failed.
TEST_F(DeviceEventsTest, AnAttemptWhosePairHasFailedFindsNoResources) {
  const auto request = Ask(*from_, b());
  ASSERT_NE(request, nullptr);
  Tell(DeviceEvent::kQpFatal);
  const Event failed = AwaitEvent(*from_);
  EXPECT_EQ(failed.kind, Event::kConnectFailed);
  EXPECT_EQ(failed.outcome, ConnectOutcome::kNoResources);
}

TEST_F(DeviceEventsTest, AnAttemptWhoseReceiveIsRefusedFindsNoResources) {
  const auto request = Ask(*from_, b());
  ASSERT_NE(request, nullptr);
  rdma_mock::RefuseReceives(1);
  ASSERT_EQ(from_->Receive(1, 0, 8), PostResult::kOk);
  EXPECT_EQ(AwaitEvent(*from_).outcome, ConnectOutcome::kNoResources);
}

// The active side has connected and broken a rule before the passive side knows of the connection.
TEST_F(DeviceEventsTest, WhatThePeerDoesComesBehindTheNewsOfIt) {
  for (DeviceEvent event : {DeviceEvent::kQpReqErr, DeviceEvent::kQpAccessErr}) {
    ASSERT_NE(AcceptUnconfirmed(), nullptr);
    BusyControlThread busy;
    TellOfDevice(event);
    rdma_mock::TellIds(rdma_mock::Ids::kRequested, rdma_mock::IdEvent::kEstablished);
    busy.LetGo();
    EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
    if (event == DeviceEvent::kQpAccessErr) {
      EXPECT_EQ(AwaitEvent(*to_).kind, Event::kRefusedWrite);
    }
    ExpectBroken(*to_);
    ExpectBroken(*from_);
    from_->pair().Reset();
    to_->pair().Reset();
  }
}

// A dropped message, too, is reported only after the connection.
TEST_F(DeviceEventsTest, WhatIsDroppedEarlyIsToldBehindTheNews) {
  if (rdma_mock::IsIwarp()) GTEST_SKIP() << "there it is the message that says so";
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  to_ = &NewEnd(b(), drops);
  ASSERT_NE(AcceptUnconfirmed(), nullptr);
  ASSERT_EQ(from_->Send(1, 0, 8), PostResult::kOk);
  Expect(from_->sends(), 1);
  PollEnds();
  DrainExecutors();
  EXPECT_EQ(to_->events().count(), 0u);
  from_->pair().Disconnect(DisconnectMode::kGraceful);
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kDropped);
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
}

// Whatever is reported of pairs, and whenever: nothing is left behind, and the next life is whole.
TEST_F(DeviceEventsTest, EachEventAtEachTime) {
  struct Time {
    const char* name;
    std::function<void()> reach;
  };
  std::unique_ptr<IncomingConnection> request;
  const auto connect = [&] { Connect(*from_, *to_); };
  const Time times[] = {
      {"idle", [] {}},
      {"asked", [&] { request = Ask(*from_, b()); }},
      {"accepted", [&] { request = AcceptUnconfirmed(); }},
      {"connected", connect},
      {"closing",
       [&] {
         connect();
         rdma_mock::ShowNoCompletions(true);
         EXPECT_EQ(from_->Write(1, 0, 8, *from_, 100), PostResult::kOk);
         from_->pair().Disconnect(DisconnectMode::kGraceful);
       }},
      {"being buried",
       [&] {
         connect();
         rdma_mock::ShowNoCompletions(true);
         from_->pair().Disconnect(DisconnectMode::kAbrupt);
       }},
      {"being destroyed",
       [&] {
         connect();
         const bool waits = rdma_mock::IsIwarp() && !rdma_mock::IsSiw();
         if (waits) rdma_mock::HoldPairs(true);
         from_->pair().Disconnect(DisconnectMode::kAbrupt);
       }},
      {"over",
       [&] {
         connect();
         from_->pair().Disconnect(DisconnectMode::kAbrupt);
         EXPECT_TRUE(Run([&] { return to_->events().Has(Event::kDisconnected); }));
       }},
  };
  constexpr DeviceEvent kOfPairs[] = {DeviceEvent::kQpFatal,     DeviceEvent::kQpReqErr,
                                      DeviceEvent::kQpAccessErr, DeviceEvent::kQpLastWqeReached,
                                      DeviceEvent::kCommEst,     DeviceEvent::kCqErr,
                                      DeviceEvent::kSrqErr};
  for (const Time& time : times) {
    for (DeviceEvent event : kOfPairs) {
      SCOPED_TRACE(time.name + (", event " + std::to_string(static_cast<int>(event))));
      time.reach();
      for (int i = 0; i < 2; ++i) Tell(event);
      rdma_mock::EndMishaps();
      request.reset();
      DestroyEnds();
      EXPECT_TRUE(AwaitPairs(0));
      MakeEnds();
    }
  }
  Connect(*from_, *to_);
  ExpectMessage();
}

class FailureCount final : public FailureSink {
 public:
  void OnDeviceFailed() override { ++count; }
  int count = 0;  // read it after DrainExecutors
};

// Runs in a process of its own, because a device that was taken out stays out.
using DeviceEventsDeathTest = DeviceEventsTest;
TEST_F(DeviceEventsDeathTest, ADeviceThatIsTakenOutEndsWhatIsThere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto take_out = [this] {
    Connect(*from_, *to_);
    End& asking = NewEnd(a());
    const auto request = Ask(asking, b());
    BusyControlThread busy;
    TellOfDevice(DeviceEvent::kDeviceFatal);
    for (auto ids : {rdma_mock::Ids::kDialling, rdma_mock::Ids::kRequested}) {
      rdma_mock::TellIds(ids, rdma_mock::IdEvent::kDeviceRemoval);
    }
    busy.LetGo();
    ExpectBroken(*from_);
    ExpectBroken(*to_);
    EXPECT_EQ(AwaitEvent(asking).outcome, ConnectOutcome::kNoResources);
    End& accepting = NewEnd(b());
    EXPECT_TRUE(request->Accept(accepting.pair(), {}).ok());
    EXPECT_EQ(AwaitEvent(accepting).outcome, ConnectOutcome::kGone);
    EXPECT_TRUE(
        absl::IsUnavailable(rdma::Open(**ControlThread::Get(), a().address(), "", 0).status()));
    DestroyEnds();
    EXPECT_TRUE(AwaitPairs(0));
    _exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(take_out(), testing::ExitedWithCode(0), "");
}

// An adapter that has failed may stay in place until somebody lets it recover; then nothing else is
// reported. When an adapter without disassociate_ucontext is removed, the kernel reports it only to
// the ids.
TEST_F(DeviceEventsDeathTest, ADeviceThatFailsEndsItsConnectionsAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [this](void (*tell)()) {
    Connect(*from_, *to_);
    FailureCount first, second, removed;
    for (FailureCount* sink : {&first, &removed}) EXPECT_TRUE(a().AddFailureSink(sink));
    EXPECT_TRUE(b().AddFailureSink(&second));
    a().RemoveFailureSink(&removed);
    for (int i = 0; i < 2; ++i) tell();
    ExpectBroken(*from_);
    ExpectBroken(*to_);
    DrainExecutors();
    EXPECT_EQ(first.count, 1);
    EXPECT_EQ(second.count, 1);
    EXPECT_EQ(removed.count, 0);
    a().RemoveFailureSink(&first);
    b().RemoveFailureSink(&second);
    EXPECT_FALSE(a().AddFailureSink(&removed));
    DestroyEnds();
    EXPECT_TRUE(AwaitPairs(0));
    _exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(fail([] { TellOfDevice(DeviceEvent::kDeviceFatal); }), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(
      fail([] { rdma_mock::TellIds(rdma_mock::Ids::kBound, rdma_mock::IdEvent::kDeviceRemoval); }),
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace viaduct::verbs
