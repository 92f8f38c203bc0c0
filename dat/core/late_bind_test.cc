// A bind on a queue pair that has ended, before its endpoint has been told.
#include <cstdint>
#include <functional>
#include <future>
#include <vector>

#include "absl/types/span.h"
#include "dat/core/connection_request.h"
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/memory_region.h"
#include "dat/core/memory_window.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_point.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::core {
namespace {

constexpr uint32_t kAll =
    verbs::kLocalRead | verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRemoteWrite;
// More than any wire can hold in flight.
constexpr size_t kLong = 16 << 20;

// A connected endpoint, and binds on it after the pair has ended and before it has been told.
class LateBind : public testing::Test, private EndpointObserver {
 protected:
  LateBind() {
    EXPECT_TRUE(InterfaceAdapter::Open(here_, &adapter_).ok());
    EXPECT_TRUE(ProtectionZone::Create(*adapter_, false, &zone_).ok());
    EXPECT_TRUE(MemoryWindow::Create(*zone_, verbs::WindowScope::kDomain, &window_).ok());
    bound_ = NewRegion();
    other_ = NewRegion();
    endpoint_ = NewEndpoint(this, &events_);
    peer_ = NewEndpoint(nullptr, &peers_);
    Connect();
  }
  ~LateBind() override { EXPECT_TRUE(adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt).ok()); }

  Ref<Endpoint> NewEndpoint(EndpointObserver* observer, Ref<EventDispatcher>* events) {
    EXPECT_TRUE(EventDispatcher::Create(*adapter_, 8, kAllStreams, false, events).ok());
    Endpoint::Parts parts;
    parts.zone = zone_;
    parts.receive = parts.request = parts.connect = *events;
    parts.observer = observer;
    Ref<Endpoint> endpoint;
    EXPECT_TRUE(Endpoint::Create(*adapter_, parts, EndpointAttributes(), &endpoint).ok());
    return endpoint;
  }
  Ref<MemoryRegion> NewRegion() {
    Ref<MemoryRegion> region;
    EXPECT_TRUE(
        MemoryRegion::Create(*adapter_, *zone_, memory_.data(), memory_.size(), kAll, &region)
            .ok());
    return region;
  }
  static Event Next(const Ref<EventDispatcher>& dispatcher) {
    Event event;
    EXPECT_TRUE(dispatcher->Wait(verbs::Deadline::Infinite(), {}, &event, nullptr).ok());
    return event;
  }
  void Connect() {
    uint64_t qualifier = 0;
    Ref<ServicePoint> point;
    ASSERT_TRUE(ServicePoint::CreatePublicAny(*adapter_, {}, *events_, &qualifier, &point).ok());
    ConnectParameters parameters;
    parameters.target = {here_, ServiceName::FromQualifier(qualifier)};
    ASSERT_TRUE(peer_->Connect(parameters).ok());
    const auto request = ShareObject<ConnectionRequest>(Next(events_).subject);
    ASSERT_TRUE(request && request->Accept(&*endpoint_, {}).ok());
    EXPECT_EQ(Next(events_).type, EventType::kEstablished);
    EXPECT_EQ(Next(peers_).type, EventType::kEstablished);
    EXPECT_TRUE(point->Free().ok());
  }

  // Length 0 unbinds.
  verbs::Key Bind(const Ref<MemoryRegion>& region, uint64_t length) {
    MemoryWindow::Binding binding;
    binding.region = region;
    binding.address = reinterpret_cast<uint64_t>(memory_.data());
    binding.length = length;
    binding.access = verbs::kRemoteRead;
    verbs::Key key = 0;
    EXPECT_TRUE(window_->Bind(*endpoint_, binding, /*cookie=*/7, /*flags=*/0, &key).ok());
    return key;
  }
  void ExpectBind(verbs::Status status) {
    const Event event = Next(events_);
    EXPECT_EQ(event.opcode, verbs::Opcode::kBind);
    EXPECT_EQ(event.status, status);
  }
  // Ends the peer in the middle of a write whose first part has arrived. This is damage, and `late`
  // runs when the endpoint's observer is told of it.
  void EndWith(std::function<void()> late) {
    late_ = std::move(late);
    std::promise<void> held, ended;
    adapter_->executor().Post([&] {
      held.set_value();
      ended.get_future().wait();
    });
    held.get_future().wait();
    const verbs::Segment segment = {Address(kLong), other_->key(), kLong};
    verbs::SendRequest write;
    write.opcode = verbs::Opcode::kWrite;
    write.segments = absl::MakeConstSpan(&segment, 1);
    write.remote_address = Address(0);
    write.remote_key = other_->key();
    EXPECT_TRUE(peer_->PostSend(write, kLong).ok());
    EXPECT_TRUE(peer_->Disconnect(verbs::DisconnectMode::kAbrupt).ok());
    ended.set_value();
    ExpectBind(verbs::Status::kFlushed);
    EXPECT_EQ(Next(events_).type, EventType::kDisconnected);
  }
  uint64_t Address(size_t offset) const {
    return reinterpret_cast<uint64_t>(memory_.data() + offset);
  }

  const verbs::Address here_ = *verbs::Address::Parse("127.0.0.1");
  std::vector<char> memory_ = std::vector<char>(2 * kLong);
  Ref<InterfaceAdapter> adapter_;
  Ref<ProtectionZone> zone_;
  Ref<EventDispatcher> events_, peers_;
  Ref<MemoryRegion> bound_, other_;
  Ref<MemoryWindow> window_;
  Ref<Endpoint> endpoint_, peer_;

 private:
  void OnDisconnected(bool) override {}
  void OnDropped() override {}
  void OnRefusedWrite() override {}
  void OnRefusedRead() override {}
  void OnDamage(verbs::Damage) override {
    EXPECT_EQ(endpoint_->state(), EndpointState::kConnected);
    late_();
  }

  std::function<void()> late_;
};

TEST_F(LateBind, ChangesNothing) {
  const verbs::Key key = Bind(bound_, 64);
  ExpectBind(verbs::Status::kSuccess);
  EndWith([this] { EXPECT_EQ(Bind(other_, 64), 0u); });
  EXPECT_EQ(window_->binding().key, key);
  EXPECT_EQ(window_->binding().region.get(), bound_.get());
  EXPECT_TRUE(other_->Free().ok());
  EXPECT_EQ(bound_->Free().code, Code::kInvalidState) << "it is bound";
}

TEST_F(LateBind, UnbindsNothing) {
  const verbs::Key key = Bind(bound_, 64);
  ExpectBind(verbs::Status::kSuccess);
  EndWith([this] { EXPECT_EQ(Bind({}, 0), 0u); });
  EXPECT_EQ(window_->binding().key, key);
  EXPECT_EQ(bound_->Free().code, Code::kInvalidState) << "it is bound";
}

// Freeing the window gives up its region, even while another call has a reference to the window.
TEST_F(LateBind, AFreedWindowHoldsNoRegion) {
  Bind(bound_, 64);
  ExpectBind(verbs::Status::kSuccess);
  EXPECT_EQ(bound_->Free().code, Code::kInvalidState);
  EXPECT_TRUE(window_->Free().ok());
  EXPECT_FALSE(window_->binding().region);
  EXPECT_TRUE(bound_->Free().ok());
}

}  // namespace
}  // namespace viaduct::core
