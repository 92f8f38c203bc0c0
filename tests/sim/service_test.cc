// Who gets which request: ports, waiters, reserved points, the provider's endpoints, hand-off.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dat/core/handle_table.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

using State = EndpointState;

class ServiceTest : public EngineTest {};

// ------------------------------------------------------------------ who gets which request

// A listener that knows no name: it rejects every request, or does not answer.
class Stranger final : public verbs::ListenerSink {
 public:
  explicit Stranger(bool rejects, const std::string& words = "")
      : rejects_(rejects), words_(words) {}
  void OnRequest(std::unique_ptr<verbs::IncomingConnection> request) override {
    if (rejects_) request->Reject(Bytes(words_));
    ++requests;
  }
  int requests = 0;

 private:
  const bool rejects_;
  const std::string words_;
};

class StrangerTest : public ServiceTest, public testing::WithParamInterface<bool> {};

TEST_P(StrangerTest, TheNextPortIsTriedWhereAnotherNameIsServed) {
  const std::vector<uint16_t> ports = b_->manager().PortsOf(Hashed());
  // The stranger has the first port, so the point listens on the second.
  Stranger stranger(GetParam());
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

INSTANTIATE_TEST_SUITE_P(Rejects, StrangerTest, testing::Bool());

// The parameter is the number of zeros that pad the "no".
class MuteTest : public ServiceTest, public testing::WithParamInterface<size_t> {};

// A fabric may reject in the place of a listener that has just gone.
TEST_P(MuteTest, ANoWithoutAWordIsNotBelievedAtOnce) {
  const std::string zeros(GetParam(), '\0');
  Stranger stranger(/*rejects=*/true, zeros);
  auto taken = b_->context().Listen(*Direct().direct_port(), &stranger);
  ASSERT_TRUE(taken.ok());
  End refused(*a_), served(*a_);
  ASSERT_TRUE(refused.ConnectVipl(*b_, Direct(), 0).ok());
  RunUntil([&] { return refused.Heard(); });
  EXPECT_EQ(refused.Listen(), Words{"peer rejected" + (zeros.empty() ? "" : " " + zeros)});
  EXPECT_EQ(stranger.requests, 3);

  ASSERT_TRUE(served.ConnectVipl(*b_, Direct(), 0).ok());
  RunUntil([&] { return stranger.requests == 4; });
  taken->reset();
  const Ref<ServicePoint> point = b_->Listen(Direct());
  EXPECT_TRUE(AwaitRequest(*b_));
}

INSTANTIATE_TEST_SUITE_P(SiwAndInfiniband, MuteTest, testing::Values(0u, 148u));

TEST_F(ServiceTest, ANoWithoutAWordOfOneThatHasGoneIsBelieved) {
  Stranger stranger(/*rejects=*/true);
  auto taken = b_->context().Listen(*Direct().direct_port(), &stranger);
  ASSERT_TRUE(taken.ok());
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 20 * kMilli).ok());
  RunUntil([&] { return stranger.requests == 1; });
  taken->reset();
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected"});
}

// A listener that comes back has the whole grace for it.
TEST_F(ServiceTest, GraceBeginsAnewBehindANoWithoutAWord) {
  Stranger stranger(/*rejects=*/true);
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), 60 * kMilli).ok());
  RunFor(40 * kMilli);
  auto taken = b_->context().Listen(*Direct().direct_port(), &stranger);
  ASSERT_TRUE(taken.ok());
  RunUntil([&] { return stranger.requests == 1; });
  taken->reset();
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected"});
  EXPECT_EQ(RequestTimes(1), (std::vector<verbs::Nanos>{0, 1, 3, 7, 15, 31, 51, 71, 91}));
}

TEST_F(ServiceTest, ANoWithWordsIsBelieved) {
  Stranger stranger(/*rejects=*/true, "go away");
  auto taken = b_->context().Listen(*Direct().direct_port(), &stranger);
  ASSERT_TRUE(taken.ok());
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Direct(), kSecond).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected go away"});
  EXPECT_EQ(stranger.requests, 1);
}

// DAT's request does not carry a name that is a port, so anybody may answer it.
TEST_F(ServiceTest, DatBelievesANoWithoutAWordAtAPort) {
  Stranger stranger(/*rejects=*/true);
  auto taken = b_->context().Listen(*Direct().direct_port(), &stranger);
  ASSERT_TRUE(taken.ok());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"peer rejected"});
  EXPECT_EQ(stranger.requests, 1);
}

TEST_F(ServiceTest, NotMineLeadsToTheNextPort) {
  const std::vector<uint16_t> ports = b_->manager().PortsOf(Hashed());
  const Ref<ServicePoint> first = b_->Listen(ServiceName::FromQualifier(ports[0]));
  // This point listens on the port that the first one opened, and ends without closing it.
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

TEST_F(ServiceTest, RequestWithoutHeaderOnAHashedPortIsRefused) {
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  const uint16_t port = b_->manager().PortsOf(Hashed())[0];
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, ServiceName::FromQualifier(port)).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(b_->requests().Queued(), 0u);
}

TEST_F(ServiceTest, FirstWaiterIsServedFirst) {
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

// As with a waiter that comes back after it has passed a request on.
TEST_F(ServiceTest, WhoHasWaitedForLongerIsServedFirst) {
  ServicePoint::Options options;
  options.name = Hashed();
  options.shared = options.one_shot = true;
  options.since = 2;
  const Ref<ServicePoint> later = b_->Listen(options);
  options.since = 1;
  const Ref<ServicePoint> earlier = b_->Listen(options);
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Hashed()).ok());
  RunUntil([&] { return b_->requests().Queued() != 0; });
  Event event;
  ASSERT_TRUE(b_->NextRequest(&event));
  EXPECT_EQ(event.service_point, earlier->handle());
}

TEST_F(ServiceTest, NameThatIsNotSharedIsServedOnce) {
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

TEST_F(ServiceTest, AnyFreeQualifierIsServed) {
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

TEST_F(ServiceTest, ReservedPointServesItsEndpointOnce) {
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

TEST_F(ServiceTest, ReservedEndpointIsFreeAgainAfterRejectOrFree) {
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
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  EXPECT_NE(b->remote_sockaddr(), nullptr) << "who asks";
  EXPECT_NE(b->remote_qualifier(), 0u);
  EXPECT_EQ(b->local_port(), *Direct().direct_port());
  ASSERT_TRUE(request->Reject({}).ok());
  EXPECT_EQ(b->state(), State::kUnconnected);
  EXPECT_EQ(b->remote_sockaddr(), nullptr);
  EXPECT_EQ(b->remote_qualifier(), 0u);
  EXPECT_EQ(b->local_port(), 0);
}

TEST_F(ServiceTest, PortOfAReservedPointIsNotThatOfTheNextConnection) {
  End a(*a_), second(*a_), b(*b_);
  Ref<ServicePoint> point;
  ASSERT_TRUE(
      ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, b_->requests(), &point).ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(nullptr, {}).ok());
  RunUntil([&] { return b.Heard(); });
  ASSERT_TRUE(b->Disconnect(verbs::DisconnectMode::kAbrupt).ok());
  ASSERT_TRUE(b->Reset().ok());
  const Ref<ServicePoint> there = a_->Listen(Direct());
  ASSERT_TRUE(b.Connect(*a_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*a_);
  ASSERT_TRUE(request);
  EXPECT_EQ(b->local_port(), request->remote_port());
  EXPECT_NE(b->local_port(), *Direct().direct_port());
}

TEST_F(ServiceTest, ReservedPointOfATakenNameLeavesTheEndpoint) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End b(*b_);
  Ref<ServicePoint> reserved;
  EXPECT_EQ(
      ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, b_->requests(), &reserved).code,
      Code::kConnQualInUse);
  EXPECT_EQ(b->state(), State::kUnconnected);
}

TEST_F(ServiceTest, FullBacklogLeavesTheReservedEndpointWaiting) {
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

TEST_F(ServiceTest, ProviderEndpointIsMadeForEachRequest) {
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

TEST_F(ServiceTest, ProviderEndpointEndsWithItsRequest) {
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

// ------------------------------------------------------------------ requests that nobody hears of

TEST_F(ServiceTest, RequestEndsWithTheDispatcherItWaitsIn) {
  for (const ServiceName& name : {Direct(), Hashed()}) {
    const size_t handles = HandleTable::Size();
    {
      End a(*a_), second(*a_);
      const Ref<EventDispatcher> backlog = b_->MakeDispatcher();
      ServicePoint::Options options;
      options.name = name;
      Ref<ServicePoint> point;
      ASSERT_TRUE(ServicePoint::CreatePublic(b_->adapter(), options, *backlog, &point).ok());
      ASSERT_TRUE(a.Connect(*b_, name).ok());
      ASSERT_TRUE(second.Connect(*b_, name).ok());
      RunUntil([&] { return backlog->Queued() == 2; });
      Event event;
      ASSERT_TRUE(backlog->Dequeue(&event).ok());
      const Ref<ConnectionRequest> told = ShareObject<ConnectionRequest>(event.subject);
      ASSERT_TRUE(point->Free().ok());
      point = {};
      ASSERT_TRUE(backlog->Free().ok());
      RunFor(kSecond);
      EXPECT_FALSE(a.Heard()) << "who was told of it can still answer";
      EXPECT_EQ(second.Listen(), Words{"non-peer rejected"});
      End b(*b_);
      ASSERT_TRUE(told->Accept(&*b, {}).ok());
      RunUntil([&] { return a.Heard(); });
      EXPECT_EQ(a.Listen(), Words{"established"});
    }
    EXPECT_EQ(HandleTable::Size(), handles);
  }
}

TEST_F(ServiceTest, EndpointOfARequestThatNobodyHearsOfComesBack) {
  End a(*a_);
  End b(*b_);
  Ref<EventDispatcher> backlog = b_->MakeDispatcher();
  Ref<ServicePoint> point;
  ASSERT_TRUE(ServicePoint::CreateReserved(b_->adapter(), Direct(), *b, *backlog, &point).ok());
  point = {};
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  RunUntil([&] { return b->state() == State::kPassivePending; });
  ASSERT_TRUE(backlog->Free().ok());
  EXPECT_EQ(b->state(), State::kUnconnected);
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});

  backlog = b_->MakeDispatcher();
  ServicePoint::Options options;
  options.name = Direct();
  options.provider_endpoint = true;
  ASSERT_TRUE(ServicePoint::CreatePublic(b_->adapter(), options, *backlog, &point).ok());
  const size_t handles = HandleTable::Size();
  ASSERT_TRUE(a->Reset().ok());
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  RunUntil([&] { return backlog->Queued() != 0; });
  EXPECT_EQ(HandleTable::Size(), handles + 2) << "the request and its endpoint";
  ASSERT_TRUE(point->Free().ok());
  point = {};
  ASSERT_TRUE(backlog->Free().ok());
  EXPECT_EQ(HandleTable::Size(), handles - 2) << "nor the point and the dispatcher";
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

// ----------------------------------------------------------------------- hand-off, duplicate

TEST_F(ServiceTest, DuplicateConnectsToTheSameService) {
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  End a(*a_), again(*a_);
  End b(*b_), second(*b_);
  EXPECT_EQ(again->DuplicateConnect(*a, verbs::Deadline::Infinite(), {}, /*grace=*/0).code,
            Code::kInvalidState);
  ASSERT_TRUE(a.Connect(*b_, Hashed()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  RunUntil([&] { return b.Heard(); });
  ASSERT_TRUE(again->DuplicateConnect(*a, In(kSecond), Bytes("again"), /*grace=*/0).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  EXPECT_EQ(Text(request->private_data()), "again");
  ASSERT_TRUE(request->Accept(&*second, {}).ok());
  RunUntil([&] { return second.Heard(); });
  EXPECT_EQ(again.Listen(), Words{"established"});
}

class HandOffTest : public ServiceTest, public testing::WithParamInterface<ServiceName> {};

INSTANTIATE_TEST_SUITE_P(Names, HandOffTest, testing::Values(Direct(), Hashed()));

TEST_P(HandOffTest, HandOffRedirectsWhatIsDuplicatedLater) {
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
  ASSERT_TRUE(again->DuplicateConnect(*a, In(kSecond), {}, /*grace=*/0).ok());
  RunUntil([&] { return b_->requests().Queued() != 0; });
  ASSERT_TRUE(b_->NextRequest(&event));
  EXPECT_EQ(event.service_point, target->handle());
}

}  // namespace
}  // namespace viaduct::core
