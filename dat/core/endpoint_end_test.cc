// What an endpoint's end waits for. Also for ThreadSanitizer.
#include <sched.h>

#include <atomic>
#include <thread>

#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/protection_zone.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"

namespace viaduct::core {
namespace {

// Stays inside until the test has had every chance to take the endpoint away.
class SlowObserver final : public CompletionObserver {
 public:
  bool OnCompletion(const verbs::Completion&) override {
    inside_ = true;
    for (int i = 0; i < 20'000 && !gone_; ++i) sched_yield();
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

TEST(EndpointEnd, WaitsForAHarvestThatHasTakenItsCompletions) {
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter).ok());
  SlowObserver observer;
  Endpoint::Parts parts;
  ASSERT_TRUE(ProtectionZone::Create(*adapter, false, &parts.zone).ok());
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(EventDispatcher::Create(*adapter, 8, kCompletionStream, false, &dispatcher).ok());
  parts.receive = parts.request = dispatcher;
  parts.completions = &observer;
  Ref<Endpoint> endpoint;
  ASSERT_TRUE(Endpoint::Create(*adapter, parts, EndpointAttributes(), &endpoint).ok());
  ASSERT_TRUE(endpoint->PostReceive(verbs::ReceiveRequest()).ok());
  ASSERT_TRUE(endpoint->FlushPosted().ok());

  std::thread harvester([&] { dispatcher->Harvest(); });
  observer.AwaitCall();
  EXPECT_TRUE(endpoint->Free().ok());
  observer.Gone();
  harvester.join();
  EXPECT_FALSE(observer.outlived());
  EXPECT_TRUE(endpoint->FlushPosted().ok());

  endpoint = {};
  parts = {};
  dispatcher = {};
  EXPECT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
}

}  // namespace
}  // namespace viaduct::core
