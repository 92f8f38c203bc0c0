// What goes wrong with an RDMA device: its connections.
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/asked.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/mishaps.h"
#include "tests/rdma_mock/told.h"
#include "verbs/base/address.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs {
namespace {

// Connections over an Ethernet port, where the kernel looks for the neighbour of a pair that is
// opened.
class RoceTest : public MishapsTest {
 protected:
  void SetUp() override {
    if (rdma_mock::IsIwarp()) GTEST_SKIP() << "the driver opens the pair";
    rdma_mock::UseSecondPort(!rdma_mock::IsInfiniband(2));
  }
};

bool IsIwarpHardware() { return rdma_mock::IsIwarp() && !rdma_mock::IsSiw(); }

// The kernel may miss a neighbour that answers at once, until the discovery times out.
TEST_F(MishapsTest, ANeighbourThatWasMissedIsLookedForAgain) {
  rdma_mock::MissNeighbours(3);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
}

TEST_F(MishapsTest, ANeighbourThatNeverAnswersIsUnreachable) {
  rdma_mock::MissNeighbours(1'000'000);
  End& from = NewEnd(a());
  ConnectOptions options;
  options.address = b().address();
  options.port = 7;
  ASSERT_TRUE(from.pair().Connect(options).ok());
  ASSERT_TRUE(Run([&] { return from.events().Has(Event::kConnectFailed); }));
  EXPECT_EQ(from.events().Take().outcome, ConnectOutcome::kUnreachable);
}

// The neighbour has been found, but it is not the host.
TEST_F(MishapsTest, NothingIsHeardOfAHostWithoutAWayThere) {
  rdma_mock::MissHosts(1);
  End& end = NewEnd(a());
  ASSERT_TRUE(Dial(end, b(), 1).ok());
  EXPECT_EQ(AwaitEvent(end).outcome, ConnectOutcome::kUnreachable);
  EXPECT_FALSE(end.pair().Heard());
}

// The earlier connection is that of a process that had a pair of the same number and died
// unnoticed, or one from the same source port.
TEST_F(MishapsTest, AnEarlierConnectionThatIsInTheWayIsOvercome) {
  rdma_mock::MeetStaleConnections(2);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ASSERT_EQ(from.Receive(1, 0, 8), PostResult::kOk);
  Connect(from, to);
  ASSERT_EQ(to.Send(2, 0, 8), PostResult::kOk);
  Expect(from.receives(), 1);
}

TEST_F(MishapsTest, OneThatStaysThereEndsTheAttempt) {
  rdma_mock::MeetStaleConnections(1'000'000);
  End& from = NewEnd(a());
  ASSERT_TRUE(Dial(from, b(), 7).ok());
  EXPECT_EQ(AwaitEvent(from).outcome,
            rdma_mock::IsIwarp() ? ConnectOutcome::kNoResources : ConnectOutcome::kRefused);
  EXPECT_TRUE(AwaitPairs(0));
}

// The accepting side does not dial again, although its device has dialled before.
TEST_F(MishapsTest, AnAcceptThatMeetsAStaleConnectionFails) {
  if (rdma_mock::IsIwarp()) GTEST_SKIP() << "TCP has none";
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  End& end = NewEnd(a());
  ASSERT_TRUE(Dial(end, b(), (*listener)->port()).ok());
  const auto dialled = AwaitRequest(requests);
  ASSERT_NE(dialled, nullptr);
  dialled->Reject({});
  ASSERT_EQ(AwaitEvent(end).outcome, ConnectOutcome::kRejected);
  End& other = NewEnd(b());
  const auto request = Ask(other, a());
  ASSERT_NE(request, nullptr);
  rdma_mock::MeetStaleAnswers(1);
  ASSERT_TRUE(request->Accept(end.pair(), {}).ok());
  const Event failed = AwaitEvent(end);
  EXPECT_EQ(failed.kind, Event::kConnectFailed);
  EXPECT_EQ(failed.outcome, ConnectOutcome::kGone);
  Settle();
  EXPECT_EQ(requests.count(), 0u);
}

TEST_F(MishapsTest, ARouteThatTakesItsTimeKeepsNobodyElse) {
  if (rdma_mock::IsIwarp()) GTEST_SKIP() << "there is no route to ask for";
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  End& from = NewEnd(a());
  End& given_up = NewEnd(a());
  rdma_mock::HoldRoutes(true);
  ASSERT_TRUE(Dial(from, b(), (*listener)->port()).ok());
  ASSERT_TRUE(Dial(given_up, b(), (*listener)->port()).ok());
  DrainExecutors();
  given_up.pair().Disconnect(DisconnectMode::kAbrupt);
  DrainExecutors();
  EXPECT_EQ(requests.count(), 0u);
  rdma_mock::HoldRoutes(false);
  const auto request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(AwaitPairs(2));
  request->Reject({});
  EXPECT_EQ(AwaitEvent(from).outcome, ConnectOutcome::kRejected);
}

TEST_F(RoceTest, ANeighbourThatIsMissedAtFirstIsConnected) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  for (int missed : {1, 2}) {
    rdma_mock::MissNeighboursAtOpen(missed);
    Connect(from, to);
    rdma_mock::MissNeighboursAtOpen(0);
    from.pair().Disconnect(DisconnectMode::kAbrupt);
    ExpectDisconnected(to, DisconnectCause::kPeer);
    for (End* end : {&from, &to}) end->pair().Reset();
  }
}

TEST_F(RoceTest, ANeighbourThatHasGoneIsUnreachable) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  BusyControlThread busy;  // the answer is not read before the neighbour has gone
  ASSERT_TRUE(request->Accept(to.pair(), {}).ok());
  rdma_mock::MissNeighboursAtOpen(100);
  busy.LetGo();
  EXPECT_EQ(AwaitEvent(from).outcome, ConnectOutcome::kUnreachable);
  AwaitEvent(to);
}

constexpr auto kLate = std::chrono::milliseconds(1100);  // longer than kFreshNeighbour

// The peer hears of the connection, sends and hangs up before the dialling side is told.
TEST_F(RoceTest, WhatFollowsALateAnswerIsToldBehindIt) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ASSERT_EQ(from.Receive(1, 0, 8), PostResult::kOk);
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  std::this_thread::sleep_for(kLate);
  rdma_mock::HoldEstablished(true);
  ASSERT_TRUE(request->Accept(to.pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(to).kind, Event::kConnected);
  ASSERT_EQ(to.Send(2, 0, 8), PostResult::kOk);
  Expect(to.sends(), 2);
  to.pair().Disconnect(DisconnectMode::kAbrupt);
  DrainExecutors();
  rdma_mock::HoldEstablished(false);
  EXPECT_EQ(AwaitEvent(from).kind, Event::kConnected);
  Expect(from.receives(), 1);
  ExpectDisconnected(from, DisconnectCause::kPeer);
}

// While the kernel looks for the neighbour, nobody waits on the control thread.
TEST_F(RoceTest, ALateAnswerHoldsUpNobody) {
  End& from = NewEnd(a());
  End& given_up = NewEnd(a());
  End& to = NewEnd(b());
  std::vector<std::unique_ptr<IncomingConnection>> asked;
  for (End* end : {&from, &given_up}) {
    asked.push_back(Ask(*end, b()));
    ASSERT_NE(asked.back(), nullptr);
  }
  std::this_thread::sleep_for(kLate);
  End& other = NewEnd(b());
  {
    BusyControlThread busy;
    ASSERT_TRUE(asked[0]->Accept(to.pair(), {}).ok());
    ASSERT_TRUE(asked[1]->Accept(other.pair(), {}).ok());
    rdma_mock::HoldOpens(true);
    busy.LetGo();
  }
  DrainExecutors();
  given_up.pair().Disconnect(DisconnectMode::kAbrupt);
  DrainExecutors();
  rdma_mock::HoldOpens(false);
  for (End* end : {&from, &to}) EXPECT_EQ(AwaitEvent(*end).kind, Event::kConnected);
  AwaitEvent(other);
}

// The caller of Listen may hold what a sink that is being called waits for.
TEST_F(MishapsTest, AListenAtATakenPortWaitsForNoSink) {
  Requests requests;
  auto first = b().Listen(0, &requests);
  ASSERT_TRUE(first.ok()) << first.status();
  BusyControlThread busy;
  std::future<absl::Status> second = std::async(
      std::launch::async, [&] { return a().Listen((*first)->port(), &requests).status(); });
  EXPECT_EQ(second.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  busy.LetGo();
  EXPECT_TRUE(absl::IsAlreadyExists(second.get()));
}

TEST_F(MishapsTest, NothingListensAtAnAddressThatTheHostHasNoMore) {
  constexpr int kSecond = 2;
  constexpr int kNotAvailable = 2;  // a form of its failure
  Requests requests;
  rdma_mock::FailCall(kSecond, kNotAvailable);
  const absl::Status status = a().Listen(0, &requests).status();
  EXPECT_STREQ(rdma_mock::FailedCall(), "rdma_bind_addr");
  rdma_mock::FailCall(0, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(a().Listen(0, &requests).ok());
}

// siw listens at a TCP port; rdma_cm, which draws the port, does not ask TCP whether it is free.
TEST_F(MishapsTest, AListenAtAnyPortPassesOverThoseThatTcpHas) {
  if (!rdma_mock::IsSiw()) GTEST_SKIP() << "siw alone listens at a socket of TCP";
  Requests requests;
  auto first = b().Listen(0, &requests);
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<Fd> taken;
  uint16_t port = (*first)->port();
  for (int i = 0; i < 3; ++i) {
    sockaddr_storage at;
    Address::Parse("0.0.0.0")->ToSockaddr(++port, &at);
    taken.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // If bind fails, somebody else on this host has the port.
    const bool bound =
        bind(taken.back().get(), reinterpret_cast<sockaddr*>(&at), sizeof(sockaddr_in)) == 0;
    ASSERT_TRUE(bound || errno == EADDRINUSE) << errno;
  }
  auto next = b().Listen(0, &requests);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_GT((*next)->port(), port);
  End& from = NewEnd(a());
  ASSERT_TRUE(Dial(from, b(), (*next)->port()).ok());
  const auto request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
}

// An RDMA device has only its own address, which other hosts can reach.
TEST_F(MishapsTest, NothingListensWhereLoopbackAloneMay) {
  Requests requests;
  setenv("VIADUCT_LISTEN", "loopback", 1);
  const absl::Status status = a().Listen(0, &requests).status();
  unsetenv("VIADUCT_LISTEN");
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_TRUE(a().Listen(0, &requests).ok());
}

// With siw the kernel may lose a listener without telling anybody.
TEST_F(MishapsTest, AListenerThatIsLostListensAnew) {
  if (!rdma_mock::IsSiw()) GTEST_SKIP() << "siw alone loses listeners";
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const uint16_t port = (*listener)->port();
  for (int round = 0; round < 3; ++round) {
    rdma_mock::LoseListeners();
    End& from = NewEnd(a());
    ASSERT_TRUE(Dial(from, b(), port).ok());
    // Until it listens again, attempts fail.
    ASSERT_TRUE(Run([&] {
      if (from.events().Take().kind == Event::kConnectFailed) {
        EXPECT_TRUE(Dial(from, b(), port).ok());
      }
      return requests.count() == 1;
    }));
    EXPECT_TRUE(b().IsServed(port));
    requests.Take()->Reject({});
    EXPECT_EQ(AwaitEvent(from).kind, Event::kConnectFailed);
  }
  listener->reset();
  EXPECT_FALSE(b().IsServed(port));
}

// The peer's siw may have missed what arrived while the connection began there.
TEST_F(MishapsTest, WhoHasDialledOverSiwSaysMore) {
  if (!rdma_mock::IsSiw()) GTEST_SKIP() << "siw alone leaves messages in its socket";
  const int before = rdma_mock::AskedEmptyWrites();
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_TRUE(Run([&] { return rdma_mock::AskedEmptyWrites() == before + 2; }));
  PollEnds();
  EXPECT_TRUE(from.sends().got().empty());
  // The empty writes keep no place in the send queue.
  const uint32_t most = from.pair_options().max_sends;
  for (uint32_t id = 0; id < most; ++id) ASSERT_EQ(to.Receive(id, 0, 8), PostResult::kOk);
  for (uint32_t id = 0; id < most; ++id) {
    ASSERT_EQ(from.Send(id, 0, 8, kConfirm), PostResult::kOk);
  }
  for (uint32_t id = 0; id < most; ++id) {
    Expect(from.sends(), id);
    Expect(to.receives(), id);
  }
}

// An empty write has a place of its own in the device's queue.
TEST_F(MishapsTest, AFullQueueHasRoomForThatWord) {
  if (!rdma_mock::IsSiw()) GTEST_SKIP() << "siw alone leaves messages in its socket";
  constexpr int kSegments = 252;
  const int before = rdma_mock::AskedEmptyWrites();
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::HoldReads(true);
  const std::vector<Segment> list(kSegments, from.At(0, 1));
  SendRequest read;
  read.opcode = Opcode::kRead;
  read.remote_address = to.Address(0);
  read.remote_key = to.region().key();
  uint32_t posted = 0;
  for (const size_t length : {list.size(), size_t{1}}) {
    read.segments = absl::MakeConstSpan(list).first(length);
    while (from.pair().PostSend(read) == PostResult::kOk) ++posted;
  }
  EXPECT_LT(posted, from.pair_options().max_sends) << "the device has room";
  EXPECT_TRUE(Run([&] { return rdma_mock::AskedEmptyWrites() == before + 1; }));
  rdma_mock::HoldReads(false);
  for (uint32_t i = 0; i < posted; ++i) Expect(from.sends(), 0);
}

// The id of that dial is kept, without its pair, until the device has given everything back.
TEST_F(MishapsTest, AnAcceptMeetsADialThatWasGivenUp) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ASSERT_EQ(from.Receive(1, 0, 8), PostResult::kOk);
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  rdma_mock::ShowNoCompletions(true);
  from.pair().Disconnect(DisconnectMode::kAbrupt);
  DrainExecutors();
  ASSERT_TRUE(request->Accept(to.pair(), {}).ok());
  rdma_mock::ShowNoCompletions(false);
  const Event event = AwaitEvent(to);
  EXPECT_EQ(event.kind, Event::kConnectFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
}

TEST_F(MishapsTest, AnAcceptThatComesToNothingIsNoConnection) {
  if (!rdma_mock::IsIwarp()) GTEST_SKIP() << "no other driver tells of it as of a beginning";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  rdma_mock::HangUpOnAccepts(1);
  ASSERT_TRUE(request->Accept(to.pair(), {}).ok());
  const Event event = AwaitEvent(to);
  EXPECT_EQ(event.kind, Event::kConnectFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
  EXPECT_EQ(AwaitEvent(from).kind, Event::kConnectFailed);
  DrainExecutors();
  EXPECT_EQ(to.events().Take().kind, Event::kNone) << "the end that the device tells of, too";
}

// Closes its listener with the first request.
class OnceServed final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    request_ = std::move(request);
    listener.reset();
  }
  std::unique_ptr<Listener> listener;

 private:
  std::unique_ptr<IncomingConnection> request_;
};

// Left to the kernel, it would be rejected, as if a program had said no.
TEST_F(MishapsTest, ARequestThatNobodyHasReadIsRefusedWithItsListener) {
  if (!a().attributes().immediate_data) GTEST_SKIP() << "on iWARP no reason goes with a reject";
  OnceServed once;
  auto listener = b().Listen(0, &once);
  ASSERT_TRUE(listener.ok()) << listener.status();
  once.listener = *std::move(listener);
  Requests others;
  auto other = b().Listen(0, &others);
  ASSERT_TRUE(other.ok()) << other.status();
  End& first = NewEnd(a());
  End& second = NewEnd(a());
  End& third = NewEnd(a());
  const uint16_t port = once.listener->port();
  a().executor().Post([&] {  // so that all requests are there when the first is read
    EXPECT_TRUE(Dial(first, b(), port).ok());
    EXPECT_TRUE(Dial(second, b(), port).ok());
    EXPECT_TRUE(Dial(third, b(), (*other)->port()).ok());
  });
  const Event refused = AwaitEvent(second);
  EXPECT_EQ(refused.kind, Event::kConnectFailed);
  EXPECT_EQ(refused.outcome, ConnectOutcome::kRefused);
  EXPECT_EQ(first.events().count(), 0u);
  const auto request = AwaitRequest(others);
  ASSERT_NE(request, nullptr) << "it was read beside the second";
  End& to = NewEnd(b());
  EXPECT_TRUE(request->Accept(to.pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(third).kind, Event::kConnected);
  DrainExecutors();
}

TEST_F(MishapsTest, AnAcceptWithoutMemoryDecidesTheRequest) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a());
  End& poor = NewEnd(b(), drops);
  End& other = NewEnd(b());
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  rdma_mock::LimitRegistrations(0);
  EXPECT_TRUE(absl::IsResourceExhausted(request->Accept(poor.pair(), {})));
  rdma_mock::LimitRegistrations(-1);
  EXPECT_TRUE(absl::IsFailedPrecondition(request->Accept(other.pair(), {})));
  const Event failed = AwaitEvent(from);
  EXPECT_EQ(failed.kind, Event::kConnectFailed);
  EXPECT_EQ(failed.outcome, ConnectOutcome::kRefused);
}

// Receives that were posted before the connection stay posted for the next attempt.
TEST_F(MishapsTest, AReceiveThatTheDeviceRefusesEndsTheAttempt) {
  constexpr int kMany = 20;  // segments
  EndOptions many;
  many.max_segments = kMany;
  for (const bool gathered : {false, true}) {
    SCOPED_TRACE(gathered);
    End& from = NewEnd(a(), many);
    End& to = NewEnd(b(), many);
    const auto refuse = [gathered](bool so) {
      if (gathered) return rdma_mock::LimitRegistrations(so ? 0 : -1);
      rdma_mock::RefuseReceives(so ? 1 : 0);
    };
    for (End* end : {&from, &to}) {
      std::vector<Segment> pieces;
      for (size_t i = 0; i < kMany; ++i) pieces.push_back(end->At(i * 16, 4));
      ASSERT_EQ(end->Receive(1, pieces), PostResult::kOk);
      ASSERT_EQ(end->Receive(2, 1000, 80), PostResult::kOk);
    }
    if (!(gathered && rdma_mock::IsIwarp())) {  // there the word to be read needs memory, too
      refuse(true);
      ASSERT_TRUE(Dial(from, b(), 1).ok());
      EXPECT_EQ(AwaitEvent(from).outcome, ConnectOutcome::kNoResources);
      refuse(false);
    }
    const auto request = Ask(from, b());
    ASSERT_NE(request, nullptr);
    refuse(true);
    EXPECT_TRUE(absl::IsResourceExhausted(request->Accept(to.pair(), {})));
    refuse(false);
    EXPECT_EQ(AwaitEvent(from).kind, Event::kConnectFailed);
    Connect(from, to);
    for (End* end : {&from, &to}) {
      for (uint64_t i = 3; i < 5; ++i) {
        ASSERT_EQ(end->Send(i, 2000, 80), PostResult::kOk);
        Expect(end->sends(), i);
      }
    }
    for (End* end : {&from, &to}) {
      for (uint64_t i = 1; i < 3; ++i) EXPECT_EQ(Expect(end->receives(), i).length, 80u);
    }
  }
}

// The id is left without its device; what is reported is the end of the request.
TEST_F(MishapsTest, AnAcceptOnADeviceThatWasRemovedFails) {
  for (const int error : {ENXIO, ENODEV}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    const auto request = Ask(from, b());
    ASSERT_NE(request, nullptr);
    rdma_mock::FailAttributes(error);
    const absl::Status accepted = request->Accept(to.pair(), {});
    EXPECT_TRUE(accepted.ok()) << accepted;
    rdma_mock::FailAttributes(0);
    const Event failed = AwaitEvent(to);
    EXPECT_EQ(failed.kind, Event::kConnectFailed);
    EXPECT_EQ(failed.outcome, ConnectOutcome::kGone);
  }
}

TEST_F(MishapsTest, AnAcceptThatTheDeviceRefusesDecidesTheRequest) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  const auto request = Ask(from, b());
  ASSERT_NE(request, nullptr);
  rdma_mock::FailAttributes(EIO);
  const absl::Status accepted = request->Accept(to.pair(), {});
  EXPECT_TRUE(absl::IsResourceExhausted(accepted)) << accepted;
  EXPECT_EQ(AwaitEvent(from).outcome, ConnectOutcome::kRefused);
}

// The kernel rejects the request, as if a program had said no.
TEST_F(MishapsTest, ARequestWhoseAcceptFailsIsRejected) {
  for (const int error : {ENOMEM, EIO}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    const auto request = Ask(from, b());
    ASSERT_NE(request, nullptr);
    rdma_mock::FailAccepts(error);
    const absl::Status accepted = request->Accept(to.pair(), {});
    rdma_mock::FailAccepts(0);
    if (error == ENOMEM) {
      EXPECT_TRUE(absl::IsResourceExhausted(accepted)) << accepted;
      EXPECT_EQ(to.events().count(), 0u);
    } else {
      EXPECT_TRUE(accepted.ok()) << accepted;
      EXPECT_EQ(AwaitEvent(to).outcome, ConnectOutcome::kGone);
    }
    const Event rejected = AwaitEvent(from);
    EXPECT_EQ(rejected.kind, Event::kConnectFailed);
    if (!rdma_mock::IsIwarp()) {
      EXPECT_EQ(rejected.outcome, ConnectOutcome::kRejected);
    }
    const auto again = Ask(from, b());
    ASSERT_NE(again, nullptr);
    EXPECT_TRUE(again->Accept(to.pair(), {}).ok());
    EXPECT_EQ(AwaitEvent(to).kind, Event::kConnected);
    EXPECT_EQ(AwaitEvent(from).kind, Event::kConnected);
  }
}

TEST_F(MishapsTest, APairOfAnotherLibraryIsNoneOfOurs) {
  rdma_mock::FailForeignPair();
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
}

// The peer is idle, so nothing else would notify it. On iWARP, TCP does.
TEST_F(MishapsTest, ADisconnectThatWasLostIsRepeated) {
  if (!a().attributes().immediate_data) GTEST_SKIP() << "on iWARP nothing is lost";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  for (DisconnectMode mode : {DisconnectMode::kAbrupt, DisconnectMode::kGraceful}) {
    Connect(from, to);
    rdma_mock::LoseDisconnects(1);
    from.pair().Disconnect(mode);
    if (mode == DisconnectMode::kGraceful) ExpectDisconnected(from, DisconnectCause::kLocal);
    for (int i = 0; i < 10; ++i) DrainExecutors();  // as far as it goes without an answer
    EXPECT_FALSE(to.events().Has(Event::kDisconnected));
    rdma_mock::RepeatDisconnects();
    ExpectDisconnected(to, DisconnectCause::kPeer);
    from.pair().Reset();
    to.pair().Reset();
  }
}

// The active side has connected, sent and disconnected before the passive side knows that there is
// a connection.
class UnconfirmedTest : public MishapsTest {
 protected:
  void SetUp() override {
    if (rdma_mock::IsIwarp()) GTEST_SKIP() << "on iWARP nothing is lost";
    from_ = &NewEnd(a());
    to_ = &NewEnd(b());
    ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
    const auto request = Ask(*from_, b());
    ASSERT_NE(request, nullptr);
    rdma_mock::LoseConfirmations(1);
    ASSERT_TRUE(request->Accept(to_->pair(), {}).ok());
    ASSERT_EQ(AwaitEvent(*from_).kind, Event::kConnected);
  }
  void SpeakAndGo() {
    ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
    from_->pair().Disconnect(DisconnectMode::kGraceful);
    ExpectDisconnected(*from_, DisconnectCause::kLocal);
  }

  End* from_ = nullptr;
  End* to_ = nullptr;
};

TEST_F(UnconfirmedTest, ADisconnectSaysThatThereWasAConnection) {
  SpeakAndGo();
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  ExpectDisconnected(*to_, DisconnectCause::kPeer);
  Expect(to_->receives(), 1);
}

TEST_F(UnconfirmedTest, WhoEndsItAtItsNewsHearsNothingMore) {
  to_->events().hook = [this](const Event&) { to_->DestroyPair(); };
  SpeakAndGo();
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  Settle();
  EXPECT_EQ(to_->events().count(), 0u);
}

// A message has failed its receive. The peer knows, and its disconnect is lost.
TEST_F(UnconfirmedTest, AFailureBeforeTheNewsBreaksTheConnectionBehindIt) {
  rdma_mock::LoseDisconnects(1);
  ASSERT_EQ(from_->Send(2, 0, 16), PostResult::kOk);
  ExpectBroken(*from_);
  PollEnds();
  EXPECT_EQ(to_->events().count(), 0u);
  rdma_mock::TellIds(rdma_mock::Ids::kRequested, rdma_mock::IdEvent::kEstablished);
  EXPECT_EQ(AwaitEvent(*to_).kind, Event::kConnected);
  ExpectBroken(*to_);
  Expect(to_->receives(), 1, Status::kLocalLength);
}

// A hardware driver may wait for the end of TCP, for a minute if the peer is dead.
TEST_F(MishapsTest, NobodyWaitsForAPairThatIsNotDestroyedYet) {
  if (!IsIwarpHardware()) GTEST_SKIP() << "this driver does not wait";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::HoldPairs(true);
  from.pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(to, DisconnectCause::kPeer);
  End& next_from = NewEnd(a());
  End& next_to = NewEnd(b());
  Connect(next_from, next_to);
  ASSERT_EQ(next_to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(next_from.Send(2, 0, 8), PostResult::kOk);
  Expect(next_to.receives(), 1);
  rdma_mock::HoldPairs(false);
}

// The peer's disconnect is on its way: what is posted meanwhile is flushed, and breaks nothing.
TEST_F(MishapsTest, WhatIsPostedBehindThePeersEndIsFlushed) {
  if (!IsIwarpHardware()) GTEST_SKIP() << "this library takes what is posted, and flushes it";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::RefuseAfterTheEnd(true);
  rdma_mock::LoseDisconnects(1);
  rdma_mock::HoldPairs(true);  // and with them the id, whose end would be reported
  from.pair().Disconnect(DisconnectMode::kAbrupt);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1, Status::kFlushed);
  ASSERT_EQ(to.Send(2, 0, 8), PostResult::kOk);
  Expect(to.sends(), 2, Status::kFlushed);
  rdma_mock::RepeatDisconnects();
  ExpectDisconnected(to, DisconnectCause::kPeer);
  rdma_mock::HoldPairs(false);
}

// The request is posted when the peer has ended the connection and this is not known here yet.
TEST_F(MishapsTest, WhatTheDeviceNeverCompletesGoesWithItsPair) {
  EXPECT_TRUE(Run([] { return rdma_mock::LiveDomains() == 0; })) << "of tests before";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::SwallowAfterTheEnd(true);
  BusyControlThread busy;
  to.pair().Disconnect(DisconnectMode::kAbrupt);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  busy.LetGo();
  Expect(from.sends(), 1, Status::kFlushed);
  ExpectDisconnected(from, DisconnectCause::kPeer);
  DestroyEnds();
  EXPECT_TRUE(Run([] { return rdma_mock::LiveDomains() == 0; }));
}

TEST_F(MishapsTest, PostsBesideTheEndLeaveNothingOpen) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  for (int round = 0; round < 100; ++round) {
    Connect(from, to);
    std::atomic<bool> begun{false}, over{false};
    std::thread poster([&] {
      while (!over) {
        from.Send(1, 0, 8);
        from.Receive(2, 0, 8);
        begun = true;
      }
    });
    while (!begun) sched_yield();
    from.pair().Disconnect(DisconnectMode::kAbrupt);
    over = true;
    poster.join();
    ASSERT_TRUE(Run([&] { return to.events().Has(Event::kDisconnected); }));
    EXPECT_TRUE(Run([&] { return from.pair().SendIdle() && from.pair().open_receives() == 0; }))
        << round;
    // A send that found no receive may have ended the connection earlier.
    DrainExecutors();
    for (End* end : {&from, &to}) {
      while (end->events().Take().kind != Event::kNone) {
      }
    }
    from.sends().got().clear();
    from.receives().got().clear();
    from.pair().Reset();
    to.pair().Reset();
  }
}

}  // namespace
}  // namespace viaduct::verbs
