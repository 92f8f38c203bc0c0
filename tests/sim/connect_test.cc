// How connections come about, and how attempts fail; both ends go through the engine's classes.
#include <cstdint>
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

// Short delays, so that a round trip is negligible beside a millisecond.
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

// The endpoint goes back to Idle after a failed attempt, as VIs do.
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

TEST_F(ConnectTest, ProfileOfAnEarlierServerIsForgotten) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_), b(*b_, ViAttributes());
  b->set_profile(Profile(2, 4096));
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 0).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  RunUntil([&] { return a.Heard() && b.Heard(); });
  ASSERT_FALSE(a->peer_profile().any);
  a.Listen();
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  ASSERT_TRUE(a->Reset().ok());
  End dat(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*dat, {}).ok());
  RunUntil([&] { return a->state() == State::kConnected; });
  EXPECT_TRUE(a->peer_profile().any);
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

TEST_P(NamedTest, GraceIsForNamesThatNobodyServes) {
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, GetParam(), "", In(kSecond), 100 * kMilli).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(Now() / kMilli, 91) << "the answer to the last one within the grace";
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(a->state(), State::kDisconnected);
  ASSERT_TRUE(a->Reset().ok());
  ASSERT_TRUE(a.Connect(*b_, GetParam(), "", In(kSecond), 100 * kMilli).ok());
  RunFor(60 * kMilli);
  const Ref<ServicePoint> point = b_->Listen(GetParam());
  EXPECT_TRUE(AwaitRequest(*b_));
}

TEST_P(NamedTest, WhoeverIsThereAndRefusesIsNotAskedAgain) {
  Ref<EventDispatcher> backlog = b_->MakeDispatcher(1);
  ServicePoint::Options options;
  options.name = GetParam();
  Ref<ServicePoint> point;
  ASSERT_TRUE(ServicePoint::CreatePublic(b_->adapter(), options, *backlog, &point).ok());
  End first(*a_), second(*a_);
  ASSERT_TRUE(first.Connect(*b_, GetParam(), "", In(kSecond), 100 * kMilli).ok());
  RunFor(kMilli);
  ASSERT_TRUE(second.Connect(*b_, GetParam(), "", In(kSecond), 100 * kMilli).ok());
  RunFor(kMilli);
  EXPECT_EQ(second.Listen(), Words{"non-peer rejected"}) << "the backlog is full";
  Event event;
  ASSERT_TRUE(backlog->Dequeue(&event).ok());
  ASSERT_TRUE(ShareObject<ConnectionRequest>(event.subject)->Reject({}).ok());
  RunFor(kMilli);
  EXPECT_EQ(first.Listen(), Words{"peer rejected"});
}

TEST_F(ConnectTest, DisconnectEndsTheGrace) {
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Direct(), "", In(kSecond), 100 * kMilli).ok());
  RunFor(10 * kMilli);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  const size_t asked = RequestTimes(1).size();
  RunFor(kSecond);
  EXPECT_FALSE(a.Heard());
  EXPECT_EQ(RequestTimes(1).size(), asked);
}

// It is known that nobody waits, so this is not a time-out.
TEST_F(ConnectTest, DeadlineWithinTheGraceEndsIt) {
  End a(*a_, ViAttributes());
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 250 * kMilli, In(40 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_LE(Now(), 40 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

// Nor is it a time-out if the deadline comes while the ports are asked once more.
TEST_F(ConnectTest, DeadlineInTheMiddleOfARoundEndsTheGrace) {
  for (verbs::Nanos after = 10 * kMilli; after < 100 * kMilli; after += kMilli / 16) {
    SCOPED_TRACE(after);
    End a(*a_, ViAttributes());
    ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 250 * kMilli, In(after)).ok());
    RunUntil([&] { return a.Heard(); });
    ASSERT_EQ(a.Listen(), Words{"non-peer rejected"});
  }
}

// The earlier rounds found nobody, but this one did.
TEST_P(NamedTest, WhoeverComesWithinTheGraceAndDoesNotDecideIsATimeOut) {
  for (const bool vipl : {false, true}) {
    End a(*a_);
    if (vipl) {
      ASSERT_TRUE(a.ConnectVipl(*b_, GetParam(), 250 * kMilli, In(90 * kMilli)).ok());
    } else {
      ASSERT_TRUE(a.Connect(*b_, GetParam(), "", In(90 * kMilli), 250 * kMilli).ok());
    }
    RunFor(20 * kMilli);
    const Ref<ServicePoint> point = b_->Listen(GetParam());
    const Ref<ConnectionRequest> request = AwaitRequest(*b_);
    ASSERT_TRUE(request);
    RunUntil([&] { return a.Heard(); });
    EXPECT_EQ(a.Listen(), Words{"timed out"});
    ASSERT_TRUE(request->Reject({}).ok());
    ASSERT_TRUE(point->Free().ok());
  }
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
  EXPECT_NE(a->open_receives(), 0u) << "still posted";
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

// For VIPL: the handle lives until the outcome is known, and after a failure until it is rejected.
TEST_F(ConnectTest, RequestWhoseRequesterHasGoneIsRejectedOnce) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_), b(*b_), other(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  RunFor(kMilli);
  ASSERT_TRUE(request->BeginAccept(&*b, {}).ok());
  EXPECT_EQ(request->Reject({}), InvalidHandle<ConnectionRequest>()) << "it is being accepted";
  RunUntil([&] { return b.Heard(); });
  EXPECT_EQ(b.Listen(), Words{"accept completion error"});
  request->EndAccept(/*established=*/false);
  EXPECT_EQ(request->Accept(&*other, {}).code, Code::kTimeout);
  EXPECT_EQ(other->state(), State::kUnconnected);
  EXPECT_TRUE(ShareObject<ConnectionRequest>(request->handle()));
  ASSERT_TRUE(request->Reject({}).ok());
  EXPECT_FALSE(ShareObject<ConnectionRequest>(request->handle()));
  EXPECT_EQ(request->Reject({}), InvalidHandle<ConnectionRequest>());
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
  EXPECT_NE(b->open_receives(), 0u);
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

TEST_F(ConnectTest, DeliveredRequestWithoutAnAnswerIsATimeOut) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Direct(), "", In(50 * kMilli)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(Now(), 50 * kMilli);
  EXPECT_EQ(a.Listen(), Words{"timed out"});
}

}  // namespace
}  // namespace viaduct::core
