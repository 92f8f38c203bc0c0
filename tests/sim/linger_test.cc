// A shared name between two waits: its port lingers, and requests wait there for the next waiter.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

// The options of VipConnectWait.
ServicePoint::Options Waiter(const ServiceName& name = Hashed()) {
  ServicePoint::Options options;
  options.name = name;
  options.shared = options.one_shot = true;
  return options;
}

class LingerTest : public EngineTest {
 protected:
  explicit LingerTest(const verbs::SimOptions& options = {}) : EngineTest(options) {}
  // A wait that gets a request.
  void Serve(const ServiceName& name = Hashed()) {
    const Ref<ServicePoint> point = b_->Listen(Waiter(name));
    End first(*a_);
    ASSERT_TRUE(first.ConnectVipl(*b_, name, 0).ok());
    ASSERT_TRUE(AwaitRequest(*b_));
    requests_of_before_ = RequestTimes(1).size();
  }
  size_t RequestsSince() { return RequestTimes(1).size() - requests_of_before_; }

 private:
  size_t requests_of_before_ = 0;
};

TEST_F(LingerTest, RequestBetweenTwoWaitsMeetsTheSecond) {
  for (const ServiceName& name : {Direct(), Hashed()}) {
    Serve(name);
    End a(*a_);
    ASSERT_TRUE(a.ConnectVipl(*b_, name, 0).ok());
    RunFor(ConnectionManager::kLinger / 2);
    EXPECT_FALSE(a.Heard()) << "it waits";
    const Ref<ServicePoint> second = b_->Listen(Waiter(name));
    EXPECT_EQ(b_->requests().Queued(), 1u) << "at once";
    EXPECT_EQ(RequestsSince(), 1u) << "without a second look";
    ASSERT_TRUE(b_->NextRequest());
  }
}

TEST_F(LingerTest, HeldRequestsAreServedInTheirOrder) {
  Serve();
  End first(*a_), second(*a_);
  ASSERT_TRUE(first.ConnectVipl(*b_, Hashed(), 0).ok());
  RunFor(kMilli);
  ASSERT_TRUE(second.ConnectVipl(*b_, Hashed(), 0).ok());
  RunFor(kMilli);
  std::vector<uint16_t> ports;
  for (int i = 0; i < 2; ++i) {
    const Ref<ServicePoint> point = b_->Listen(Waiter());
    const Ref<ConnectionRequest> request = b_->NextRequest();
    ASSERT_TRUE(request);
    ports.push_back(request->remote_port());
  }
  EXPECT_EQ(ports, (std::vector<uint16_t>{first->local_port(), second->local_port()}));
}

TEST_F(LingerTest, RequestThatNobodyComesForIsToldSo) {
  Serve();
  End vipl(*a_), dat(*a_);
  const verbs::Nanos begin = Now();
  ASSERT_TRUE(vipl.ConnectVipl(*b_, Hashed(), 0).ok());
  ASSERT_TRUE(dat.Connect(*b_, Hashed()).ok());
  RunUntil([&] { return vipl.Heard() && dat.Heard(); });
  EXPECT_EQ(vipl.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(dat.Listen(), Words{"non-peer rejected"});
  EXPECT_LT(Now() - begin, 2 * ConnectionManager::kLinger);
  EXPECT_EQ(b_->requests().Queued(), 0u);
}

TEST_F(LingerTest, WaiterOfAnotherProcessIsFoundBehindALingeringPort) {
  // Another process of b's host listens at the second port of the name.
  const std::vector<uint16_t> ports = b_->manager().PortsOf(Hashed());
  Serve();
  struct Other final : verbs::ListenerSink {
    void OnRequest(std::unique_ptr<verbs::IncomingConnection> request) override {
      ++requests;
      request->Reject({});
    }
    int requests = 0;
  } other;
  auto second = b_->context().Listen(ports[1], &other);
  ASSERT_TRUE(second.ok());
  End a(*a_);
  const verbs::Nanos begin = Now();
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(other.requests, 1);
  EXPECT_LT(Now() - begin, ConnectionManager::kLinger) << "it was not held";
}

TEST_F(LingerTest, WaitThatTimesOutLingersToo) {
  Ref<ServicePoint> point = b_->Listen(Waiter());
  ASSERT_TRUE(point->Free().ok());
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
  RunFor(kMilli);
  point = b_->Listen(Waiter());
  EXPECT_TRUE(b_->NextRequest());
}

// A server that polls now and then, and does something else for longer than a wait lingers.
TEST_F(LingerTest, RequestWaitsForTheNextLook) {
  for (int look = 0; look < 3; ++look) {
    ServicePoint::Options options = Waiter();
    options.since = Now();
    Ref<ServicePoint> point = b_->Listen(options);
    ASSERT_TRUE(point->Free().ok());
    RunFor(10 * ConnectionManager::kLinger);
    End a(*a_);
    ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
    RunFor(10 * ConnectionManager::kLinger);
    EXPECT_FALSE(a.Heard()) << "it waits";
    options.since = Now();
    point = b_->Listen(options);
    EXPECT_EQ(b_->requests().Queued(), 1u) << "at once";
    ASSERT_TRUE(b_->NextRequest());
  }
}

TEST_F(LingerTest, NobodyWaitsForALookForEver) {
  ServicePoint::Options options = Waiter();
  options.since = Now();
  ASSERT_TRUE(b_->Listen(options)->Free().ok());
  End a(*a_);
  const verbs::Nanos begin = Now();
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_LT(Now() - begin, ConnectionManager::kShortWaitLinger + ConnectionManager::kLinger);
}

// Each held request is a connection that the server has not asked for.
TEST_F(LingerTest, SoManyWaitForALookAndNoMore) {
  constexpr size_t kMostHeld = 256;
  ServicePoint::Options options = Waiter(Direct());
  options.since = Now();
  ASSERT_TRUE(b_->Listen(options)->Free().ok());
  std::vector<std::unique_ptr<End>> ends;
  for (size_t i = 0; i <= kMostHeld; ++i) {
    ends.push_back(std::make_unique<End>(*a_));
    ASSERT_TRUE(ends.back()->Connect(*b_, Direct()).ok());
    RunFor(kMilli / 2);
    EXPECT_EQ(ends.back()->Heard(), i == kMostHeld) << i;
  }
}

// Only after the poll itself does the port wait for so long.
TEST_F(LingerTest, AWaitBehindALookLingersItsOwnTime) {
  const uint16_t port = b_->manager().PortsOf(Hashed())[0];
  for (const bool served : {false, true}) {
    SCOPED_TRACE(served);
    ServicePoint::Options options = Waiter();
    options.since = Now();
    ASSERT_TRUE(b_->Listen(options)->Free().ok());
    options.since = Now();
    if (served) {
      Serve();
    } else {
      const Ref<ServicePoint> point = b_->Listen(options);
      RunFor(ConnectionManager::kShortWait);
      ASSERT_TRUE(point->Free().ok());
    }
    EXPECT_TRUE(b_->context().IsServed(port));
    RunFor(ConnectionManager::kLinger + kMilli);
    EXPECT_FALSE(b_->context().IsServed(port));
  }
}

// On a device that loses requests between two listeners, as RDMA devices do.
class RestTest : public LingerTest {
 protected:
  static constexpr verbs::Nanos kRest = 40 * ConnectionManager::kLinger;
  RestTest() : LingerTest({.listener_rest = kRest}) {}
};

TEST_F(RestTest, APortStaysForAsLongAsTheDeviceWants) {
  for (int wait = 0; wait < 3; ++wait) {
    Serve();
    RunFor(kRest - kMilli);
    EXPECT_TRUE(b_->context().IsServed(b_->manager().PortsOf(Hashed())[0]));
  }
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
  RunFor(kMilli / 2);
  EXPECT_FALSE(a.Heard()) << "it waits";
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
  EXPECT_FALSE(b_->context().IsServed(b_->manager().PortsOf(Hashed())[0]));
}

TEST_F(LingerTest, PortIsFreeAfterwards) {
  const uint16_t port = b_->manager().PortsOf(Hashed())[0];
  struct Stranger final : verbs::ListenerSink {
    void OnRequest(std::unique_ptr<verbs::IncomingConnection>) override {}
  } stranger;
  Serve();
  EXPECT_FALSE(b_->context().Listen(port, &stranger).ok());
  RunFor(ConnectionManager::kLinger + kMilli);
  EXPECT_TRUE(b_->context().Listen(port, &stranger).ok());
}

TEST_F(LingerTest, EachWaitLingersItsWholeTime) {
  Serve();
  RunFor(ConnectionManager::kLinger - kMilli);
  Serve();
  RunFor(ConnectionManager::kLinger - kMilli);  // the first one's time has passed
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
  RunFor(kMilli / 2);
  EXPECT_FALSE(a.Heard());
  const Ref<ServicePoint> point = b_->Listen(Waiter());
  EXPECT_TRUE(b_->NextRequest());
}

TEST_F(LingerTest, PointOfDatTakesALingeringNameOver) {
  Serve();
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Hashed(), "hello").ok());
  RunFor(kMilli);
  const Ref<ServicePoint> point = b_->Listen(Hashed());
  const Ref<ConnectionRequest> request = b_->NextRequest();
  ASSERT_TRUE(request);
  EXPECT_EQ(Text(request->private_data()), "hello");
  ASSERT_TRUE(point->Free().ok());
  End late(*a_);
  ASSERT_TRUE(late.Connect(*b_, Hashed()).ok());
  RunUntil([&] { return late.Heard(); });
  EXPECT_EQ(late.Listen(), Words{"non-peer rejected"}) << "a name of DAT does not linger";
}

TEST_F(LingerTest, HandOffIsNotHeld) {
  Serve();
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  const Ref<ConnectionRequest> request = AwaitRequest(*b_);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->HandOff(Hashed()), InvalidParameter(2));
}

TEST_F(LingerTest, AdapterMayGoWhileARequestIsHeld) {
  Serve();
  End a(*a_);
  ASSERT_TRUE(a.ConnectVipl(*b_, Hashed(), 0).ok());
  RunFor(kMilli);
  EXPECT_FALSE(a.Heard());
  b_.reset();
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

TEST_F(LingerTest, BacklogThatIsFullEndsTheSearchOfDatAlone) {
  Ref<EventDispatcher> backlog = b_->MakeDispatcher(1);
  ASSERT_TRUE(backlog->PostSoftware(nullptr).ok());
  ServicePoint::Options options;
  options.name = Hashed();
  Ref<ServicePoint> point;
  ASSERT_TRUE(ServicePoint::CreatePublic(b_->adapter(), options, *backlog, &point).ok());
  End dat(*a_);
  ASSERT_TRUE(dat.Connect(*b_, Hashed()).ok());
  RunUntil([&] { return dat.Heard(); });
  EXPECT_EQ(dat.Listen(), Words{"non-peer rejected"});
  EXPECT_EQ(RequestTimes(1).size(), 1u);
  End vipl(*a_);
  ASSERT_TRUE(vipl.ConnectVipl(*b_, Hashed(), 0).ok());
  RunUntil([&] { return vipl.Heard(); });
  EXPECT_EQ(RequestTimes(1).size(), 1u + b_->manager().PortsOf(Hashed()).size());
}

}  // namespace
}  // namespace viaduct::core
