// How connections come about, and how they do not: both ends through the engine's classes.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dat/core/connection_header.h"
#include "dat/core/handle_table.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

using State = EndpointState;
using verbs::DisconnectMode;

// Short delays, so that a round trip vanishes beside a millisecond.
verbs::SimOptions ShortDelays() {
  verbs::SimOptions options;
  options.max_delay = 2'000;
  return options;
}

class ConnectTest : public EngineTest {
 protected:
  ConnectTest() : EngineTest(ShortDelays()) {}
};

EndpointProfile Profile(uint8_t reliability, uint32_t transfer) {
  EndpointProfile profile;
  profile.any = false;
  profile.reliability = reliability;
  profile.max_transfer_size = transfer;
  return profile;
}

// Back to Idle after a failed attempt, as VIs do.
EndpointAttributes ViAttributes() {
  EndpointAttributes attributes;
  attributes.keep_receives_on_failure = true;
  return attributes;
}

// ------------------------------------------------------------------------ accept and reject

class NamedTest : public ConnectTest, public testing::WithParamInterface<ServiceName> {};

INSTANTIATE_TEST_SUITE_P(Names, NamedTest, testing::Values(Direct(), Hashed()),
                         [](const auto& info) {
                           return std::string(info.param.direct_port() ? "Direct" : "Hashed");
                         });

TEST_P(NamedTest, AcceptCarriesPrivateDataBothWays) {
  const Ref<ServicePoint> point = b_->Listen(GetParam());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, GetParam(), "hello").ok());
  EXPECT_EQ(a->state(), State::kActivePending);
  RunUntil([&] { return b_->requests().Queued() != 0; });
  Event event;
  const Ref<ConnectionRequest> request = b_->NextRequest(&event);
  ASSERT_TRUE(request);
  EXPECT_EQ(event.service_point, point->handle());
  EXPECT_EQ(event.qualifier, GetParam().qualifier());
  EXPECT_EQ(Text(request->private_data()), "hello");
  EXPECT_EQ(request->header().has_value(), !GetParam().direct_port().has_value());
  EXPECT_EQ(request->remote_address(), a_->address());
  EXPECT_EQ(request->remote_port(), a->local_port());
  ASSERT_TRUE(request->Accept(&*b, Bytes("world")).ok());
  EXPECT_EQ(b->state(), State::kCompletionPending);
  EXPECT_FALSE(ShareObject<ConnectionRequest>(request->handle()));
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"established world"});
  EXPECT_EQ(b.Listen(), Words{"established"});
  EXPECT_EQ(a->state(), State::kConnected);
  EXPECT_EQ(b->state(), State::kConnected);
  EXPECT_EQ(a->remote_qualifier(), GetParam().qualifier());
  EXPECT_EQ(b->remote_qualifier(), a->local_port());
  EXPECT_EQ(b->remote_address(), a_->address());
}

TEST_P(NamedTest, RejectCarriesPrivateData) {
  const Ref<ServicePoint> point = b_->Listen(GetParam());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, GetParam(), "hello").ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  ASSERT_TRUE(request->Reject(Bytes("go away")).ok());
  EXPECT_FALSE(ShareObject<ConnectionRequest>(request->handle()));
  EXPECT_FALSE(request->Reject({}).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected go away"});
  EXPECT_EQ(a->state(), State::kDisconnected);
}

TEST_P(NamedTest, NobodyListensIsAnsweredAtOnce) {
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, GetParam()).ok());
  RunFor(kMilli);
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(a->state(), State::kDisconnected);
}

TEST_P(NamedTest, FullBacklogIsAnsweredAtOnce) {
  Ref<EventDispatcher> backlog = b_->MakeDispatcher(2);
  ServicePoint::Options options;
  options.name = GetParam();
  Ref<ServicePoint> point;
  ASSERT_TRUE(ServicePoint::CreatePublic(b_->adapter(), options, *backlog, &point).ok());
  End first(*a_), second(*a_), third(*a_);
  const size_t handles = HandleTable::Size();
  for (End* end : {&first, &second, &third}) {
    ASSERT_TRUE(end->Connect(*b_, GetParam()).ok());
    RunFor(kMilli);
  }
  EXPECT_EQ(backlog->Queued(), 2u);
  EXPECT_EQ(third.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(HandleTable::Size(), handles + 2) << "the refused request's handle";
  Event event;
  ASSERT_TRUE(backlog->Dequeue(&event).ok());
  ASSERT_TRUE(third->Reset().ok());
  ASSERT_TRUE(third.Connect(*b_, GetParam()).ok());
  RunFor(kMilli);
  EXPECT_EQ(backlog->Queued(), 2u) << "there is room again";
}

TEST_P(NamedTest, RequestThatNobodyAnswersIsRefusedByItsEnd) {
  const Ref<ServicePoint> point = b_->Listen(GetParam());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, GetParam()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  request->Destroy();
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

// --------------------------------------------------------------------------- VIPL's header

TEST_F(ConnectTest, ViplHeaderCarriesNamesAndProfilesBothWays) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_, ViAttributes());
  End b(*b_, ViAttributes());
  a->set_profile(Profile(2, 4096));
  b->set_profile(Profile(4, 8192));
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 0).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  ASSERT_TRUE(request->header().has_value());
  EXPECT_EQ(request->header()->kind, HeaderKind::kViplRequest);
  EXPECT_EQ(request->header()->local.bytes(), "client");
  EXPECT_TRUE(request->name() == Direct());
  EXPECT_TRUE(request->private_data().empty());
  EXPECT_EQ(request->header()->profile.reliability, 2);
  ASSERT_TRUE(request->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"established"});
  EXPECT_FALSE(a->peer_profile().any);
  EXPECT_EQ(a->peer_profile().reliability, 4);
  EXPECT_EQ(a->peer_profile().max_transfer_size, 8192u);
  EXPECT_EQ(b->peer_profile().reliability, 2);
  EXPECT_EQ(b->peer_profile().max_transfer_size, 4096u);
}

TEST_F(ConnectTest, ProfileOfAnEarlierPeerIsForgotten) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End vipl(*a_, ViAttributes());
  End dat(*a_);
  End b(*b_);
  vipl->set_profile(Profile(2, 4096));
  ASSERT_TRUE(vipl.ConnectVipl(*b_, Direct(), 0).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  ASSERT_FALSE(b->peer_profile().any);
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
  ASSERT_TRUE(b->Reset().ok());
  ASSERT_TRUE(dat.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  EXPECT_TRUE(b->peer_profile().any);
}

// -------------------------------------------------------------------------- grace, deadline

TEST_F(ConnectTest, GraceRepeatsWithBackOff) {
  End a(*a_, ViAttributes());
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 100 * kMilli).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(RequestTimes(1), (std::vector<verbs::Nanos>{0, 1, 3, 7, 15, 31, 51, 71, 91}));
  EXPECT_EQ(Now() / kMilli, 91) << "the answer to the last one within the grace";
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(a->state(), State::kUnconnected);
  RunFor(kSecond);
  EXPECT_FALSE(a.Heard());
}

TEST_F(ConnectTest, WaiterThatComesWithinTheGraceIsFound) {
  End a(*a_, ViAttributes());
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 250 * kMilli).ok());
  RunFor(60 * kMilli);
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  EXPECT_TRUE(AwaitRequest(*b_));
  EXPECT_EQ(Now() / kMilli, 71);
}

// Nobody waits: that is known, so it is not a time-out.
TEST_F(ConnectTest, DeadlineWithinTheGraceEndsIt) {
  End a(*a_, ViAttributes());
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 250 * kMilli, In(40 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_LE(Now(), 40 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

TEST_F(ConnectTest, SilenceUntilTheDeadlineIsUnreachable) {
  simulation_.SetReachable(b_->context(), false);
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Direct(), "", In(50 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(Now(), 50 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"unreachable"});
  EXPECT_EQ(a->state(), State::kDisconnected);
}

TEST_F(ConnectTest, SilenceAfterAnAnswerIsATimeOut) {
  // A service of another name on the first port says that it is not this one.
  const uint16_t first = a_->manager().PortsOf(Hashed())[0];
  const Ref<ServicePoint> other = b_->Listen(ServiceName::FromQualifier(first));
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Hashed(), "", In(50 * kMilli)).ok());
  RunUntil([&] { return !RequestTimes(1).empty(); });
  RunUntil([&] { return simulation_.trace().size() >= 2; });  // its answer
  simulation_.SetReachable(b_->context(), false);
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(Now(), 50 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"timed out"});
}

TEST_F(ConnectTest, SilenceIsATimeOutForVipl) {
  simulation_.SetReachable(b_->context(), false);
  End a(*a_, ViAttributes());
  ASSERT_TRUE(a.Receive(1).ok());
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 250 * kMilli, In(50 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(Now(), 50 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"timed out"});
  EXPECT_EQ(a->state(), State::kUnconnected);
  EXPECT_FALSE(a->ReceiveIdle()) << "still posted";
}

TEST_F(ConnectTest, UndecidedRequestEndsAtTheDeadlineAndItsAcceptFails) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_, ViAttributes());
  End b(*b_);
  ASSERT_TRUE(b.Receive(1).ok());
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 0, In(50 * kMilli)).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(Now(), 50 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"timed out"});
  RunFor(kMilli);
  ASSERT_TRUE(request->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(b.Listen(), (Words{"1 flushed", "accept completion error"}));
  EXPECT_EQ(b->state(), State::kDisconnected);
  EXPECT_FALSE(a.Heard());
}

TEST_F(ConnectTest, DeadlineOfAnEstablishedConnectionMeansNothing) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct(), "", In(50 * kMilli)).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), Words{"established"});
  EXPECT_EQ(a->state(), State::kConnected);
}

// ------------------------------------------------------------------------------- failures

TEST_F(ConnectTest, FailureMayKeepTheReceives) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_, ViAttributes());
  End b(*b_);
  ASSERT_TRUE(a.Receive(1).ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Reject({}).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected"});
  EXPECT_EQ(a->state(), State::kUnconnected);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  ASSERT_TRUE(b.Send(2).ok());
  RunFor(kMilli);
  EXPECT_EQ(a.Listen(), (Words{"established", "1 ok"}));
}

TEST_F(ConnectTest, FailureFlushesTheReceives) {
  End a(*a_);
  ASSERT_TRUE(a.Receive(1).ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), (Words{"1 flushed", "non-peer rejected"}));
}

TEST_F(ConnectTest, UnreachableMayFlushAlthoughOtherFailuresKeep) {
  EndpointAttributes reliable = ViAttributes();
  reliable.flush_on_unreachable = true;
  for (bool flush : {false, true}) {
    End a(*a_, flush ? reliable : ViAttributes());
    ASSERT_TRUE(a.Receive(1).ok());
    ConnectParameters parameters;
    parameters.target.address = verbs::Address::V4(0x0a0000ff);  // no such host
    parameters.target.name = Direct();
    ASSERT_TRUE(a->Connect(parameters).ok());
    RunUntil([&] { return a.Heard(); });
    EXPECT_EQ(a.Listen(), flush ? (Words{"1 flushed", "unreachable"}) : Words{"unreachable"});
    EXPECT_EQ(a->state(), flush ? State::kDisconnected : State::kUnconnected);
  }
}

TEST_F(ConnectTest, AcceptThatFailsHasNoEffect) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);

  End connecting(*b_);
  simulation_.SetReachable(a_->context(), false);
  ASSERT_TRUE(connecting.Connect(*a_, Direct()).ok());
  EXPECT_EQ(request->Accept(&*connecting, {}),
            Error(Code::kInvalidState, static_cast<uint8_t>(State::kActivePending)));
  EXPECT_EQ(connecting->state(), State::kActivePending);
  simulation_.SetReachable(a_->context(), true);

  Ref<Endpoint> bare;
  ASSERT_TRUE(Endpoint::Create(b_->adapter(), {}, {}, &bare).ok());
  EXPECT_EQ(request->Accept(bare.get(), {}), InvalidState(StateDetail::kEndpointZone));
  Endpoint::Parts parts = b.Parts();
  parts.connect = {};
  Ref<Endpoint> deaf;
  ASSERT_TRUE(Endpoint::Create(b_->adapter(), parts, {}, &deaf).ok());
  EXPECT_EQ(request->Accept(deaf.get(), {}), InvalidState(StateDetail::kEndpointConnect));
  EXPECT_EQ(deaf->state(), State::kUnconnected);
  ASSERT_TRUE(bare->Free().ok());
  ASSERT_TRUE(deaf->Free().ok());

  const std::string too_long(b_->adapter().max_private_data() + 1, 'x');
  EXPECT_EQ(request->Accept(&*b, Bytes(too_long)), InvalidParameter(3));
  EXPECT_EQ(request->Reject(Bytes(too_long)), InvalidParameter(2));
  EXPECT_EQ(request->Accept(nullptr, {}), InvalidHandle<Endpoint>()) << "it has none of its own";
  End elsewhere(*a_);
  EXPECT_EQ(request->Accept(&*elsewhere, {}), InvalidHandle<Endpoint>());
  EXPECT_EQ(b->state(), State::kUnconnected);

  const std::string longest(b_->adapter().max_private_data(), 'x');
  ASSERT_TRUE(request->Accept(&*b, Bytes(longest)).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"established " + longest});
}

TEST_F(ConnectTest, ConnectThatFailsHasNoEffect) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  const std::string longest(a_->adapter().max_private_data(), 'x');
  EXPECT_EQ(a.Connect(*b_, Direct(), longest + "x"), InvalidParameter(5));
  EXPECT_EQ(a->state(), State::kUnconnected);
  ASSERT_TRUE(a.Connect(*b_, Direct(), longest).ok());
  EXPECT_EQ(a.Connect(*b_, Direct()).code, Code::kInvalidState);
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  EXPECT_EQ(Text(request->private_data()), longest);
  Ref<Endpoint> bare;
  ASSERT_TRUE(Endpoint::Create(a_->adapter(), {}, {}, &bare).ok());
  ConnectParameters parameters;
  parameters.target.address = b_->address();
  parameters.target.name = Direct();
  EXPECT_EQ(bare->Connect(parameters), InvalidState(StateDetail::kEndpointZone));
}

// --------------------------------------------------------------------------- death, aborts

TEST_F(ConnectTest, PassiveSideDiesBeforeItAccepts) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_));
  simulation_.Kill(b_->context());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

TEST_F(ConnectTest, PassiveSideDiesAfterItAccepted) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, Bytes("hello")).ok());
  simulation_.Kill(b_->context());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"established hello", "broken"}));
  EXPECT_EQ(a->state(), State::kDisconnected);
}

TEST_F(ConnectTest, ActiveSideDiesBeforeTheAccept) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  simulation_.Kill(a_->context());
  RunFor(kMilli);
  ASSERT_TRUE(request->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(b.Listen(), Words{"accept completion error"});
}

TEST_F(ConnectTest, ActiveSideDiesAfterTheAccept) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_, ViAttributes());
  ASSERT_TRUE(b.Receive(1).ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  simulation_.Kill(a_->context());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(b.Listen(), Words{"accept completion error"});
  EXPECT_EQ(b->state(), State::kUnconnected) << "its receives are kept";
  EXPECT_FALSE(b->ReceiveIdle());
}

TEST_F(ConnectTest, ActiveSideDiesWhileConnected) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(b.Receive(1).ok());
  simulation_.Kill(a_->context());
  RunFor(kSecond);
  EXPECT_EQ(b.Listen(), (Words{"1 flushed", "broken"}));
}

TEST_F(ConnectTest, PassiveSideDiesWhileConnected) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a.Receive(1).ok());
  simulation_.Kill(b_->context());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"1 flushed", "broken"}));
  End late(*a_);
  ASSERT_TRUE(late.Connect(*b_, Direct()).ok());
  RunUntil([&] { return late.Heard(); });
  EXPECT_EQ(late.Listen(), Words{"non-peer rejected"});
}

TEST_F(ConnectTest, AttemptIsAbortedBeforeItArrives) {
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  End a(*a_);
  ASSERT_TRUE(a.Receive(1).ok());
  ASSERT_TRUE(a.Connect(*b_, Hashed(), "", In(kSecond)).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a.Listen(), (Words{"1 flushed", "disconnected"}));
  RunFor(2 * kSecond);
  EXPECT_FALSE(a.Heard());
}

TEST_F(ConnectTest, AttemptIsAbortedWhileTheRequestWaits) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  ASSERT_TRUE(request->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(b.Listen(), Words{"accept completion error"});
  RunFor(kSecond);
  EXPECT_FALSE(a.Heard());
}

TEST_F(ConnectTest, AttemptIsAbortedBetweenTwoRounds) {
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), kSecond).ok());
  RunFor(25 * kMilli);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  const size_t requests = RequestTimes(1).size();
  RunFor(2 * kSecond);
  EXPECT_EQ(RequestTimes(1).size(), requests);
  EXPECT_FALSE(a.Heard());
}

TEST_F(ConnectTest, AcceptIsAborted) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(b.Listen(), Words{"disconnected"});
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"established", "disconnected"}));
  EXPECT_FALSE(b.Heard());
}

// ------------------------------------------------------------------ who gets which request

TEST_F(ConnectTest, NextPortIsTriedWhereAnotherNameIsServed) {
  const std::vector<uint16_t> ports = b_->manager().PortsOf(Hashed());
  // Somebody who knows no name has the first port, so the point listens on the second.
  struct Stranger final : verbs::ListenerSink {
    void OnRequest(std::unique_ptr<verbs::IncomingConnection>) override {}  // refuses
  } stranger;
  auto taken = b_->context().Listen(ports[0], &stranger);
  ASSERT_TRUE(taken.ok());
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  // And another name is served on that second port too.
  const Ref<ServicePoint> other = b_->Listen(ServiceName::FromQualifier(ports[1]));
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Hashed(), "hello").ok());
  Event event;
  RunUntil([&] { return b_->requests().Queued() != 0; });
  const Ref<ConnectionRequest> request = b_->NextRequest(&event);
  ASSERT_TRUE(request);
  EXPECT_EQ(event.service_point, point->handle());
  EXPECT_EQ(Text(request->private_data()), "hello");
  EXPECT_EQ(RequestTimes(1).size(), 2u);
}

TEST_F(ConnectTest, NotMineLeadsToTheNextPort) {
  const std::vector<uint16_t> ports = b_->manager().PortsOf(Hashed());
  const Ref<ServicePoint> first = b_->Listen(ServiceName::FromQualifier(ports[0]));
  // Listens on the port that the other one opened; ends without closing it.
  ServicePoint::Options options;
  options.name = Hashed();
  Ref<ServicePoint> gone = b_->Listen(options);
  ASSERT_TRUE(gone->Free().ok());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Hashed()).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(RequestTimes(1).size(), ports.size());
  EXPECT_EQ(b_->requests().Queued(), 0u);
}

TEST_F(ConnectTest, RequestWithoutHeaderOnAHashedPortIsRefused) {
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  const uint16_t port = b_->manager().PortsOf(Hashed())[0];
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, ServiceName::FromQualifier(port)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(b_->requests().Queued(), 0u);
}

TEST_F(ConnectTest, FirstWaiterIsServedFirst) {
  ServicePoint::Options options;
  options.name = Hashed();
  options.shared = options.one_shot = true;
  const Ref<ServicePoint> first = b_->Listen(options);
  const Ref<ServicePoint> second = b_->Listen(options);
  End a(*a_), c(*a_), d(*a_);
  std::vector<Handle> served;
  for (End* end : {&a, &c}) {
    ASSERT_TRUE(end->Connect(*b_, Hashed()).ok());
    RunUntil([&] { return b_->requests().Queued() != 0; });
    Event event;
    ASSERT_TRUE(b_->NextRequest(&event));
    served.push_back(event.service_point);
  }
  EXPECT_EQ(served, (std::vector<Handle>{first->handle(), second->handle()}));
  ASSERT_TRUE(d.Connect(*b_, Hashed()).ok());
  RunUntil([&] { return d.Heard(); });
  EXPECT_EQ(d.Listen(), Words{"non-peer rejected"}) << "each serves once";
}

TEST_F(ConnectTest, NameThatIsNotSharedIsServedOnce) {
  ServicePoint::Options alone, shared;
  alone.name = shared.name = Hashed();
  shared.shared = true;
  Ref<ServicePoint> point = b_->Listen(alone);
  Ref<ServicePoint> other;
  const size_t handles = HandleTable::Size();
  EXPECT_EQ(ServicePoint::CreatePublic(b_->adapter(), shared, b_->requests(), &other).code,
            Code::kConnQualInUse);
  EXPECT_EQ(HandleTable::Size(), handles);
  ASSERT_TRUE(point->Free().ok());
  point = b_->Listen(shared);
  EXPECT_EQ(ServicePoint::CreatePublic(b_->adapter(), alone, b_->requests(), &other).code,
            Code::kConnQualInUse);
  EXPECT_TRUE(ServicePoint::CreatePublic(b_->adapter(), shared, b_->requests(), &other).ok());
}

TEST_F(ConnectTest, AnyFreeQualifierIsServed) {
  ServicePoint::Options options;
  uint64_t first = 0, second = 0;
  Ref<ServicePoint> one, two;
  ASSERT_TRUE(
      ServicePoint::CreatePublicAny(b_->adapter(), options, b_->requests(), &first, &one).ok());
  ASSERT_TRUE(
      ServicePoint::CreatePublicAny(b_->adapter(), options, b_->requests(), &second, &two).ok());
  EXPECT_NE(first, second);
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, ServiceName::FromQualifier(second)).ok());
  RunUntil([&] { return b_->requests().Queued() != 0; });
  Event event;
  ASSERT_TRUE(b_->NextRequest(&event));
  EXPECT_EQ(event.service_point, two->handle());
  EXPECT_EQ(event.qualifier, second);
}

// ----------------------------------------------------------------------- reserved, provider's

TEST_F(ConnectTest, ReservedPointServesItsEndpointOnce) {
  End a(*a_), second(*a_);
  End b(*b_);
  Ref<ServicePoint> point;
  ASSERT_TRUE(
      ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, b_->requests(), &point).ok());
  EXPECT_EQ(b->state(), State::kReserved);
  EXPECT_EQ(b->Free().code, Code::kInvalidState);
  ASSERT_TRUE(a.Connect(*b_, Direct(), "hello").ok());
  RunUntil([&] { return b_->requests().Queued() != 0; });
  Event event;
  const Ref<ConnectionRequest> request = b_->NextRequest(&event);
  ASSERT_TRUE(request);
  EXPECT_EQ(event.service_point, nullptr);
  EXPECT_EQ(b->state(), State::kPassivePending);
  EXPECT_EQ(HandleTable::TypeOf(point->handle()), ObjectType::kNone);
  ASSERT_TRUE(second.Connect(*b_, Direct()).ok());
  RunUntil([&] { return second.Heard(); });
  EXPECT_EQ(second.Listen(), Words{"non-peer rejected"});
  End other(*b_);
  EXPECT_EQ(request->Accept(&*other, {}), InvalidHandle<Endpoint>());
  ASSERT_TRUE(request->Accept(nullptr, {}).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(b.Listen(), Words{"established"});
}

TEST_F(ConnectTest, ReservedEndpointIsFreeAgainAfterRejectOrFree) {
  End a(*a_);
  End b(*b_);
  Ref<ServicePoint> point;
  ASSERT_TRUE(
      ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, b_->requests(), &point).ok());
  ASSERT_TRUE(point->Free().ok());
  EXPECT_EQ(b->state(), State::kUnconnected);
  ASSERT_TRUE(
      ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, b_->requests(), &point).ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Reject({}).ok());
  EXPECT_EQ(b->state(), State::kUnconnected);
}

TEST_F(ConnectTest, ReservedPointOfATakenNameLeavesTheEndpoint) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End b(*b_);
  Ref<ServicePoint> reserved;
  EXPECT_EQ(
      ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, b_->requests(), &reserved).code,
      Code::kConnQualInUse);
  EXPECT_EQ(b->state(), State::kUnconnected);
}

TEST_F(ConnectTest, FullBacklogLeavesTheReservedEndpointWaiting) {
  Ref<EventDispatcher> backlog = b_->MakeDispatcher(1);
  ASSERT_TRUE(backlog->PostSoftware(nullptr).ok());
  End a(*a_);
  End b(*b_);
  Ref<ServicePoint> point;
  ASSERT_TRUE(ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, *backlog, &point).ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(b->state(), State::kReserved);
  Event event;
  ASSERT_TRUE(backlog->Dequeue(&event).ok());
  ASSERT_TRUE(a->Reset().ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  RunUntil([&] { return backlog->Queued() != 0; });
  EXPECT_EQ(b->state(), State::kPassivePending);
}

TEST_F(ConnectTest, ProviderEndpointIsMadeForEachRequest) {
  ServicePoint::Options options;
  options.name = Direct();
  options.provider_endpoint = true;
  const Ref<ServicePoint> point = b_->Listen(options);
  End a(*a_);
  End parts(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  const Ref<Endpoint> made = request->endpoint();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->state(), State::kTentativePending);
  EXPECT_EQ(request->Accept(nullptr, {}), InvalidState(StateDetail::kEndpointZone));
  EXPECT_EQ(made->state(), State::kTentativePending);
  const Endpoint::Parts given = parts.Parts();
  ASSERT_TRUE(made->Modify(&given, nullptr).ok());
  ASSERT_TRUE(request->Accept(nullptr, {}).ok());
  RunUntil([&] { return parts.Heard(); });
  EXPECT_EQ(parts.Listen(), Words{"established"});
  EXPECT_EQ(made->state(), State::kConnected);
  EXPECT_TRUE(ShareObject<Endpoint>(made->handle()));
  ASSERT_TRUE(made->Free().ok());
}

TEST_F(ConnectTest, ProviderEndpointEndsWithItsRequest) {
  ServicePoint::Options options;
  options.name = Direct();
  options.provider_endpoint = true;
  const Ref<ServicePoint> point = b_->Listen(options);
  const size_t handles = HandleTable::Size();
  for (bool reject : {true, false}) {
    End a(*a_);
    ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
    const Ref<ConnectionRequest> request = AwaitRequest(*b_);
    if (reject) {
      ASSERT_TRUE(request->Reject({}).ok());
    } else {
      request->Destroy();
    }
    RunUntil([&] { return a.Heard(); });
  }
  EXPECT_EQ(HandleTable::Size(), handles);
}

// ----------------------------------------------------------------------- hand-off, duplicate

TEST_F(ConnectTest, DuplicateConnectsToTheSameService) {
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  End a(*a_), again(*a_);
  End b(*b_), second(*b_);
  EXPECT_EQ(again->DuplicateConnect(*a, verbs::Deadline::Infinite(), {}).code, Code::kInvalidState);
  ASSERT_TRUE(a.Connect(*b_, Hashed()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  ASSERT_TRUE(again->DuplicateConnect(*a, In(kSecond), Bytes("again")).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  EXPECT_EQ(Text(request->private_data()), "again");
  ASSERT_TRUE(request->Accept(&*second, {}).ok());
  RunUntil([&] { return second.Heard(); });
  EXPECT_EQ(again.Listen(), Words{"established"});
}

TEST_P(NamedTest, HandOffRedirectsWhatIsDuplicatedLater) {
  const ServiceName elsewhere = ServiceName::FromQualifier(uint64_t{1} << 41);
  const Ref<ServicePoint> point = b_->Listen(GetParam());
  End a(*a_), again(*a_);
  End b(*b_);
  ASSERT_TRUE(a.Connect(*b_, GetParam(), "hello").ok());
  const Ref<ConnectionRequest> first = AwaitRequest(*b_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->HandOff(elsewhere), InvalidParameter(2)) << "nobody serves it";
  const Ref<ServicePoint> target = b_->Listen(elsewhere);
  ASSERT_TRUE(first->HandOff(elsewhere).ok());
  EXPECT_FALSE(ShareObject<ConnectionRequest>(first->handle()));
  Event event;
  const Ref<ConnectionRequest> moved = b_->NextRequest(&event);
  ASSERT_TRUE(moved);
  EXPECT_EQ(event.service_point, target->handle());
  EXPECT_EQ(Text(moved->private_data()), "hello");
  ASSERT_TRUE(moved->Accept(&*b, Bytes("world")).ok());
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"established world"});
  EXPECT_EQ(a->remote_qualifier(), elsewhere.qualifier());
  ASSERT_TRUE(again->DuplicateConnect(*a, In(kSecond), {}).ok());
  RunUntil([&] { return b_->requests().Queued() != 0; });
  ASSERT_TRUE(b_->NextRequest(&event));
  EXPECT_EQ(event.service_point, target->handle());
}

}  // namespace
}  // namespace viaduct::core
