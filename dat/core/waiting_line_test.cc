// The line (waiting_line.cc) and hand-offs as one process sees them; who is served when is in
// tests/conformance.
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "dat/core/connection_manager.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/service_name.h"
#include "dat/core/testing_request.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::core {
namespace {

constexpr verbs::Nanos kPatience = 60'000'000'000;

// A random name, whose ports nobody else on this host uses. The process number would not do,
// because processes of two tests may have the same one.
ServiceName NameOfItsOwn() {
  const uint32_t number = std::random_device()();
  return *ServiceName::FromBytes(&number, sizeof number);
}

// A waiter that has waited for longer. It stands at one port of the name, and moves up to another
// one just before it is asked for the first time.
class EarlierWaiter final : public verbs::ListenerSink {
 public:
  EarlierWaiter(verbs::Context& context, uint16_t port, uint16_t next)
      : context_(context), next_(next) {
    Stand(port);
  }
  void OnRequest(std::unique_ptr<verbs::IncomingConnection>) override {}
  // Whether it stands at this port, and so takes the request.
  bool Takes(uint16_t port) {
    if (next_ != 0) Stand(std::exchange(next_, uint16_t{0}));
    return listener_ != nullptr && listener_->port() == port;
  }

 private:
  // It has the new place before it gives up the old one.
  void Stand(uint16_t port) {
    auto listener = context_.Listen(port, this);
    EXPECT_TRUE(listener.ok()) << port;
    if (listener.ok()) listener_ = *std::move(listener);
  }

  verbs::Context& context_;
  uint16_t next_;
  std::unique_ptr<verbs::Listener> listener_;
};

TEST(WaitingLine, WhoMovesUpBeforeHeIsAskedIsMet) {
  const verbs::Address here = *verbs::Address::Parse("127.0.0.1");
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(here, &adapter).ok());
  {
    ServicePoint::Options waiter;
    waiter.name = NameOfItsOwn();
    waiter.shared = waiter.one_shot = true;
    waiter.since = adapter->executor().Now();
    waiter.deadline = adapter->DeadlineAfter(kPatience);
    ConnectionManager& connections = adapter->connections();
    const std::vector<uint16_t> ports = connections.PortsOf(waiter.name);
    EarlierWaiter earlier(connections.context(), ports[2], ports[1]);
    TestingRequest request(here,
                           [&](uint16_t port, verbs::Deadline) { return earlier.Takes(port); });
    EXPECT_TRUE(connections.PassToEarlierWaiter(request, waiter));
  }
  EXPECT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
}

// As with dat_cr_handoff: the process that takes the request is asked after one that is stopped.
TEST(HandOff, WhoIsAskedFirstLeavesTimeToTheOthers) {
  const verbs::Address here = *verbs::Address::Parse("127.0.0.1");
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(here, &adapter).ok());
  {
    ConnectionManager& connections = adapter->connections();
    const ServiceName name = NameOfItsOwn();
    const std::vector<uint16_t> ports = connections.PortsOf(name);
    EarlierWaiter stopped(connections.context(), ports[1], 0),
        other(connections.context(), ports[3], 0);
    std::vector<uint16_t> asked;
    std::vector<verbs::Nanos> until;
    TestingRequest request(here, [&](uint16_t port, verbs::Deadline deadline) {
      asked.push_back(port);
      until.push_back(deadline.at());
      return port == ports[3];
    });
    const verbs::Nanos begin = adapter->executor().Now();
    EXPECT_TRUE(connections.HandOff(request, name).ok());
    EXPECT_EQ(asked, (std::vector<uint16_t>{ports[1], ports[3]})) << "nobody is at the others";
    ASSERT_EQ(until.size(), 2u);
    EXPECT_LT(until[0], until[1]);
    EXPECT_GE(until[1], begin + ConnectionManager::kLongestAnswer) << "the rest is the last one's";
  }
  EXPECT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
}

}  // namespace
}  // namespace viaduct::core
