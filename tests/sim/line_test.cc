// The line of a name's waiters (dat/core/waiting_line.cc) on a host whose ports are others': how
// one moves up, and how often it looks.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dat/core/connection_manager.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/service_point.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"
#include "verbs/device.h"
#include "verbs/sim/simulation.h"

namespace viaduct::core {
namespace {

// What others of its host do at their ports.
struct Host {
  std::set<uint16_t> served;     // as waiters
  std::set<uint16_t> strangers;  // as programs that are not ours
  int looks = 0;
  int tries = 0;  // to listen
};

// A process of that host.
class HostContext final : public verbs::Context {
 public:
  HostContext(std::unique_ptr<verbs::Context> node, Host& host)
      : node_(std::move(node)), host_(host) {}

  const verbs::DeviceAttributes& attributes() const override { return node_->attributes(); }
  const verbs::Address& address() const override { return node_->address(); }
  verbs::Executor& executor() override { return node_->executor(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateDomain(bool wildcard) override {
    return node_->CreateDomain(wildcard);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> Register(verbs::ProtectionDomain& domain,
                                                                void* address, size_t length,
                                                                uint32_t access,
                                                                verbs::AddressBase base) override {
    return node_->Register(domain, address, length, access, base);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateWindow(
      verbs::ProtectionDomain& domain, verbs::WindowScope scope) override {
    return node_->CreateWindow(domain, scope);
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(
      const verbs::SharedReceiveOptions& options) override {
    return node_->CreateSharedReceiveQueue(options);
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      verbs::CompletionSink* sink) override {
    return node_->CreateCompletionQueue(sink);
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(
      const verbs::QueuePairOptions& options) override {
    return node_->CreateQueuePair(options);
  }
  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(uint16_t port,
                                                          verbs::ListenerSink* sink) override {
    ++host_.tries;
    if (host_.served.contains(port) || host_.strangers.contains(port)) {
      return absl::AlreadyExistsError("taken");
    }
    return node_->Listen(port, sink);
  }
  bool IsServed(uint16_t port) override {
    ++host_.looks;
    return host_.served.contains(port) || node_->IsServed(port);
  }

 private:
  const std::unique_ptr<verbs::Context> node_;
  Host& host_;
};

// A waiter at a place behind others.
class LineTest : public EngineTest {
 protected:
  static constexpr size_t kPlace = 9;
  static constexpr verbs::Nanos kTick = 10 * kMilli;

  LineTest() {
    auto manager = std::make_shared<ConnectionManager>(
        std::make_unique<HostContext>(simulation_.NewNode(), host_), ConnectionManager::Ports());
    EXPECT_TRUE(InterfaceAdapter::Open(std::move(manager), &adapter_).ok());
    EXPECT_TRUE(
        EventDispatcher::Create(*adapter_, 1, kRequestStream, /*eager=*/false, &requests_).ok());
    ports_ = adapter_->connections().PortsOf(Hashed());
    host_.served.insert(ports_.begin(), ports_.begin() + kPlace);
    ServicePoint::Options options;
    options.name = Hashed();
    options.shared = options.one_shot = true;
    options.since = Now();
    EXPECT_TRUE(ServicePoint::CreatePublic(*adapter_, options, *requests_, &point_).ok());
  }
  ~LineTest() override {
    EXPECT_TRUE(point_->Free().ok());
    (void)adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt);
  }

  void ExpectAt(size_t place) {
    std::vector<size_t> places;
    for (size_t i = 0; i < ports_.size(); ++i) {
      const bool others = host_.served.contains(ports_[i]);
      if (!others && adapter_->context().IsServed(ports_[i])) places.push_back(i);
    }
    EXPECT_EQ(places, std::vector<size_t>{place});
  }

  Host host_;
  std::vector<uint16_t> ports_;

 private:
  Ref<InterfaceAdapter> adapter_;
  Ref<EventDispatcher> requests_;
  Ref<ServicePoint> point_;
};

// Each look is a dial, of which the process there wakes up.
TEST_F(LineTest, WhoStandsFarBehindLooksNoMoreThanTwiceAtATime) {
  constexpr int kTicks = 100;
  RunFor(kTicks * kTick);
  EXPECT_GE(host_.looks, kTicks);
  EXPECT_LE(host_.looks, 2 * kTicks + 2);
  ExpectAt(kPlace);
}

TEST_F(LineTest, AHoleMovesBack) {
  host_.served.erase(ports_[3]);
  RunFor(kTick);
  ExpectAt(kPlace);
  host_.served.insert(ports_[3]);
  host_.served.erase(ports_[kPlace - 1]);
  RunFor(kTick);
  ExpectAt(kPlace - 1);
}

TEST_F(LineTest, SeveralHolesArePassedAtOnce) {
  for (size_t place = 4; place < kPlace; ++place) host_.served.erase(ports_[place]);
  RunFor(kTick);
  ExpectAt(4);
  host_.served.clear();
  RunFor(kTick);
  ExpectAt(0);
}

TEST_F(LineTest, AStrangersPortIsPassed) {
  host_.served.erase(ports_[kPlace - 1]);
  host_.strangers.insert(ports_[kPlace - 1]);
  RunFor(3 * kTick);
  ExpectAt(kPlace);
  host_.served.erase(ports_[kPlace - 2]);
  RunFor(kTick);
  ExpectAt(kPlace - 2);
}

// To the kernel each try is a listener that is made and destroyed.
TEST_F(LineTest, AStrangersPortIsNotTriedAtEachLook) {
  host_.served.erase(ports_[kPlace - 1]);
  host_.strangers.insert(ports_[kPlace - 1]);
  const int before = host_.tries;
  RunFor(300 * kTick);
  EXPECT_LE(host_.tries - before, 4);
  host_.strangers.clear();
  RunFor(100 * kTick);
  ExpectAt(kPlace - 1);
}

// Who is between may serve another name.
TEST_F(LineTest, TheFrontIsSoonSomebodys) {
  host_.served.erase(ports_[0]);
  RunFor(kTick);
  ExpectAt(0);
}

}  // namespace
}  // namespace viaduct::core
