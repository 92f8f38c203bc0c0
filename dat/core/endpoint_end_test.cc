// What the end of an endpoint waits for. Also run under ThreadSanitizer.
#include <poll.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <utility>

#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/object.h"
#include "dat/core/protection_zone.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"

namespace viaduct::core {
namespace {

// Stays inside its call until the test has had every chance to take the endpoint away.
class SlowObserver final : public CompletionObserver {
 public:
  bool OnCompletion(const verbs::Completion&) override {
    inside_ = true;
    for (int i = 0; i < 20 && !gone_; ++i) poll(nullptr, 0, 1);
    outlived_ = gone_.load();
    return false;
  }
  void AwaitCall() const {
    while (!inside_) sched_yield();
  }
  void Gone() { gone_ = true; }
  bool outlived() const { return outlived_; }

 private:
  std::atomic<bool> inside_{false}, gone_{false}, outlived_{false};
};

// The owner of an observer: it must not end while the observer is inside a call.
class Owner final : public Object {
 public:
  explicit Owner(SlowObserver& observer) : Object(ObjectType::kVi), observer_(observer) {}

 private:
  ~Owner() override { observer_.Gone(); }
  SlowObserver& observer_;
};

// An endpoint whose observer is inside a call.
class EndpointEnd : public testing::Test {
 protected:
  EndpointEnd() {
    EXPECT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter_).ok());
    Endpoint::Parts parts;
    EXPECT_TRUE(ProtectionZone::Create(*adapter_, false, &parts.zone).ok());
    EXPECT_TRUE(EventDispatcher::Create(*adapter_, 8, kCompletionStream, false, &dispatcher_).ok());
    parts.receive = parts.request = dispatcher_;
    parts.completions = &observer_;
    parts.observers_owner = Ref<Object>::Adopt(new Owner(observer_));
    EXPECT_TRUE(Endpoint::Create(*adapter_, parts, EndpointAttributes(), &endpoint_).ok());
    EXPECT_TRUE(endpoint_->PostReceive(verbs::ReceiveRequest()).ok());
    EXPECT_TRUE(endpoint_->FlushPosted().ok());
    harvester_ = std::thread([this] { dispatcher_->Harvest(); });
    observer_.AwaitCall();
  }
  ~EndpointEnd() override {
    harvester_.join();
    EXPECT_FALSE(observer_.outlived());
    EXPECT_TRUE(endpoint_->FlushPosted().ok());
    endpoint_ = {};
    dispatcher_ = {};
    EXPECT_TRUE(adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  }

  SlowObserver observer_;
  Ref<InterfaceAdapter> adapter_;
  Ref<EventDispatcher> dispatcher_;
  Ref<Endpoint> endpoint_;
  std::thread harvester_;
};

TEST_F(EndpointEnd, WaitsForAHarvestThatHasTakenItsCompletions) {
  EXPECT_TRUE(endpoint_->Free().ok());
}

// As with VipDestroyVi and VipCloseNic at the same time: the second one does not wait.
TEST_F(EndpointEnd, ASecondEndTakesNothingFromTheObservers) {
  std::thread first([this] { endpoint_->Destroy(); });
  while (ShareObject<Endpoint>(endpoint_->handle())) sched_yield();
  EXPECT_FALSE(endpoint_->Free().ok());
  first.join();
}

class EndedOwner final : public Object {
 public:
  explicit EndedOwner(bool& ended) : Object(ObjectType::kVi), ended_(ended) {}

 private:
  ~EndedOwner() override { ended_ = true; }
  bool& ended_;
};

// As with VipSetViAttributes and VipDestroyVi at the same time: the owner refers to the endpoint,
// so if an ended endpoint took parts, both would live for ever.
TEST(EndedEndpoint, TakesNoParts) {
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter).ok());
  bool owner_ended = false;
  Ref<Endpoint> endpoint;
  Endpoint::Parts parts;
  ASSERT_TRUE(ProtectionZone::Create(*adapter, false, &parts.zone).ok());
  parts.observers_owner = Ref<Object>::Adopt(new EndedOwner(owner_ended));
  ASSERT_TRUE(Endpoint::Create(*adapter, parts, EndpointAttributes(), &endpoint).ok());
  ASSERT_TRUE(endpoint->Free().ok());
  EXPECT_EQ(endpoint->Modify(&parts, nullptr).code, Code::kInvalidHandle);
  const EndpointAttributes attributes;
  EXPECT_EQ(endpoint->Modify(nullptr, &attributes).code, Code::kInvalidHandle);
  EXPECT_FALSE(endpoint->parts().zone);
  const Ref<ProtectionZone> zone = std::move(parts.zone);
  parts = {};
  EXPECT_TRUE(owner_ended);
  EXPECT_TRUE(zone->Free().ok());
  endpoint = {};
  EXPECT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
}

}  // namespace
}  // namespace viaduct::core
