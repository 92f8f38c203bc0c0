// The line (waiting_line.cc) as one process sees it; who is served when is in tests/conformance.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dat/core/connection_manager.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/service_name.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::core {
namespace {

constexpr verbs::Nanos kPatience = 60'000'000'000;

// One that has waited for longer: it stands at one port of the name, and moves up to another one
// when it is about to be asked for the first time.
class Elder final : public verbs::ListenerSink {
 public:
  Elder(verbs::Context& context, uint16_t port, uint16_t next) : context_(context), next_(next) {
    Stand(port);
  }
  void OnRequest(std::unique_ptr<verbs::IncomingConnection>) override {}
  // It is there, and takes the request.
  bool Takes(uint16_t port) {
    if (next_ != 0) Stand(std::exchange(next_, uint16_t{0}));
    return listener_ != nullptr && listener_->port() == port;
  }

 private:
  // The new place is there before the old one is not.
  void Stand(uint16_t port) {
    auto listener = context_.Listen(port, this);
    EXPECT_TRUE(listener.ok()) << port;
    if (listener.ok()) listener_ = *std::move(listener);
  }

  verbs::Context& context_;
  uint16_t next_;
  std::unique_ptr<verbs::Listener> listener_;
};

class Request final : public verbs::IncomingConnection {
 public:
  Request(const verbs::Address& address, Elder& elder) : address_(address), elder_(elder) {}
  const verbs::Address& peer_address() const override { return address_; }
  uint16_t peer_port() const override { return 1; }
  const verbs::Address& local_address() const override { return address_; }
  absl::Span<const uint8_t> private_data() const override { return {}; }
  absl::Status Accept(verbs::QueuePair&, absl::Span<const uint8_t>) override {
    return absl::ResourceExhaustedError("no pair");
  }
  void Reject(absl::Span<const uint8_t>) override {}
  void Refuse() override {}
  absl::Status HandOff(uint16_t port, absl::Span<const uint8_t>, verbs::Deadline) override {
    return elder_.Takes(port) ? absl::OkStatus() : absl::NotFoundError("nobody");
  }
  absl::Span<const uint8_t> note() const override { return {}; }

 private:
  const verbs::Address& address_;
  Elder& elder_;
};

TEST(WaitingLine, WhoMovesUpBeforeHeIsAskedIsMet) {
  const verbs::Address here = *verbs::Address::Parse("127.0.0.1");
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(here, &adapter).ok());
  {
    ServicePoint::Options waiter;
    waiter.name = *ServiceName::FromBytes("line", 4);
    waiter.shared = waiter.one_shot = true;
    waiter.since = adapter->executor().Now();
    waiter.deadline = adapter->DeadlineAfter(kPatience);
    ConnectionManager& connections = adapter->connections();
    const std::vector<uint16_t> ports = connections.PortsOf(waiter.name);
    Elder elder(connections.context(), ports[2], ports[1]);
    Request request(here, elder);
    EXPECT_TRUE(connections.PassToElder(request, waiter));
  }
  EXPECT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
}

}  // namespace
}  // namespace viaduct::core
