// Two calls that free the same object, or one that frees it and one that would use it: both hold a
// reference when they find out which came first.
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/memory_region.h"
#include "dat/core/memory_window.h"
#include "dat/core/notifier.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_point.h"
#include "dat/core/shared_receive_queue.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"

namespace viaduct::core {
namespace {

class FreeTwiceTest : public ::testing::Test {
 protected:
  FreeTwiceTest() {
    EXPECT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter_).ok());
    EXPECT_TRUE(ProtectionZone::Create(*adapter_, false, &zone_).ok());
  }
  ~FreeTwiceTest() override {
    EXPECT_TRUE(adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  }

  template <typename T>
  static void ExpectOneFrees(const Ref<T>& object) {
    EXPECT_TRUE(object->Free().ok());
    const Error second = object->Free();
    EXPECT_EQ(second.code, Code::kInvalidHandle);
    EXPECT_EQ(second.detail, static_cast<uint8_t>(object->type()));
  }

  Ref<InterfaceAdapter> adapter_;
  Ref<ProtectionZone> zone_;
};

TEST_F(FreeTwiceTest, Endpoint) {
  Endpoint::Parts parts;
  parts.zone = zone_;
  Ref<Endpoint> endpoint;
  ASSERT_TRUE(Endpoint::Create(*adapter_, parts, EndpointAttributes(), &endpoint).ok());
  ExpectOneFrees(endpoint);
}

TEST_F(FreeTwiceTest, EventDispatcher) {
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(EventDispatcher::Create(*adapter_, 8, kSoftwareStream, false, &dispatcher).ok());
  ExpectOneFrees(dispatcher);
}

TEST_F(FreeTwiceTest, Notifier) {
  Ref<Notifier> notifier;
  ASSERT_TRUE(Notifier::Create(*adapter_, {}, &notifier).ok());
  ExpectOneFrees(notifier);
}

TEST_F(FreeTwiceTest, ServicePoint) {
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(EventDispatcher::Create(*adapter_, 8, kRequestStream, false, &dispatcher).ok());
  Ref<ServicePoint> point;
  uint64_t qualifier = 0;
  ASSERT_TRUE(ServicePoint::CreatePublicAny(*adapter_, {}, *dispatcher, &qualifier, &point).ok());
  ExpectOneFrees(point);
}

TEST_F(FreeTwiceTest, Memory) {
  char bytes[64];
  Ref<MemoryRegion> region;
  ASSERT_TRUE(
      MemoryRegion::Create(*adapter_, *zone_, bytes, sizeof bytes, verbs::kLocalRead, &region)
          .ok());
  ExpectOneFrees(region);
  Ref<MemoryWindow> window;
  ASSERT_TRUE(MemoryWindow::Create(*zone_, verbs::WindowScope::kDomain, &window).ok());
  ExpectOneFrees(window);
}

TEST_F(FreeTwiceTest, SharedReceiveQueue) {
  Ref<SharedReceiveQueue> queue;
  ASSERT_TRUE(SharedReceiveQueue::Create(*adapter_, *zone_, 8, 1, &queue).ok());
  ExpectOneFrees(queue);
}

TEST_F(FreeTwiceTest, ProtectionZone) { ExpectOneFrees(zone_); }

TEST_F(FreeTwiceTest, WhatADestroyEnded) {
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(EventDispatcher::Create(*adapter_, 8, kSoftwareStream, false, &dispatcher).ok());
  dispatcher->Destroy();
  EXPECT_EQ(dispatcher->Free().code, Code::kInvalidHandle);
}

// A freed object is used by no other any more: the other one is not created, or stays as it was.
class UseOfTheFreedTest : public FreeTwiceTest {
 protected:
  Ref<ProtectionZone> FreedZone() {
    Ref<ProtectionZone> zone;
    EXPECT_TRUE(ProtectionZone::Create(*adapter_, false, &zone).ok());
    EXPECT_TRUE(zone->Free().ok());
    return zone;
  }
  Ref<EventDispatcher> NewDispatcher(uint32_t streams) {
    Ref<EventDispatcher> dispatcher;
    EXPECT_TRUE(EventDispatcher::Create(*adapter_, 8, streams, false, &dispatcher).ok());
    return dispatcher;
  }
  Ref<EventDispatcher> FreedDispatcher(uint32_t streams) {
    const Ref<EventDispatcher> dispatcher = NewDispatcher(streams);
    EXPECT_TRUE(dispatcher->Free().ok());
    return dispatcher;
  }
  Error CreateEndpoint(const Endpoint::Parts& parts) {
    Ref<Endpoint> endpoint;
    return Endpoint::Create(*adapter_, parts, EndpointAttributes(), &endpoint);
  }
};

constexpr Error kNoZone = InvalidHandle(ObjectType::kProtectionZone);
constexpr Error kNoDispatcher = InvalidHandle(ObjectType::kEventDispatcher);

TEST_F(UseOfTheFreedTest, ByAnEndpoint) {
  const Ref<EventDispatcher> live = NewDispatcher(kCompletionStream | kConnectionStream);
  Endpoint::Parts parts;
  parts.receive = parts.request = live;
  parts.connect = FreedDispatcher(kConnectionStream);
  EXPECT_EQ(CreateEndpoint(parts), kNoDispatcher);
  parts.connect = live;
  parts.zone = FreedZone();
  EXPECT_EQ(CreateEndpoint(parts), kNoZone);
  parts.zone = zone_;
  ASSERT_TRUE(SharedReceiveQueue::Create(*adapter_, *zone_, 8, 1, &parts.shared_receives).ok());
  EXPECT_TRUE(parts.shared_receives->Free().ok());
  EXPECT_EQ(CreateEndpoint(parts), InvalidHandle<SharedReceiveQueue>());
  EXPECT_TRUE(live->Free().ok());
}

TEST_F(UseOfTheFreedTest, ByAnEndpointThatIsModified) {
  Endpoint::Parts parts;
  parts.zone = zone_;
  parts.receive = NewDispatcher(kCompletionStream);
  Ref<Endpoint> endpoint;
  ASSERT_TRUE(Endpoint::Create(*adapter_, parts, EndpointAttributes(), &endpoint).ok());
  Endpoint::Parts others = parts;
  others.receive = FreedDispatcher(kCompletionStream);
  EXPECT_EQ(endpoint->Modify(&others, nullptr), kNoDispatcher);
  EXPECT_EQ(endpoint->parts().receive.get(), parts.receive.get());
  EXPECT_EQ(parts.receive->Free(), InvalidState(StateDetail::kDispatcherInUse));
  EXPECT_TRUE(endpoint->Free().ok());
  EXPECT_TRUE(parts.receive->Free().ok());
}

TEST_F(UseOfTheFreedTest, ByAServicePoint) {
  const Ref<EventDispatcher> dispatcher = FreedDispatcher(kRequestStream);
  Ref<ServicePoint> point;
  uint64_t qualifier = 0;
  EXPECT_EQ(ServicePoint::CreatePublicAny(*adapter_, {}, *dispatcher, &qualifier, &point),
            kNoDispatcher);
  EXPECT_EQ(ServicePoint::CreatePublic(*adapter_, {}, *dispatcher, &point), kNoDispatcher);
  Ref<Endpoint> endpoint;
  ASSERT_TRUE(Endpoint::Create(*adapter_, Endpoint::Parts(), EndpointAttributes(), &endpoint).ok());
  EXPECT_EQ(ServicePoint::CreateReserved(*adapter_, {}, *endpoint, *dispatcher, &point),
            kNoDispatcher);
  EXPECT_EQ(endpoint->state(), EndpointState::kUnconnected);
}

TEST_F(UseOfTheFreedTest, ByAnAdapter) {
  EXPECT_EQ(adapter_->SetAsyncDispatcher(*FreedDispatcher(kAsyncStream), false), kNoDispatcher);
}

TEST_F(UseOfTheFreedTest, ByAWindow) {
  char bytes[64];
  Ref<MemoryRegion> region;
  ASSERT_TRUE(
      MemoryRegion::Create(*adapter_, *zone_, bytes, sizeof bytes, verbs::kLocalRead, &region)
          .ok());
  Ref<MemoryWindow> window;
  ASSERT_TRUE(MemoryWindow::Create(*zone_, verbs::WindowScope::kDomain, &window).ok());
  Endpoint::Parts parts;
  parts.zone = zone_;
  Ref<Endpoint> endpoint;
  ASSERT_TRUE(Endpoint::Create(*adapter_, parts, EndpointAttributes(), &endpoint).ok());
  EXPECT_TRUE(region->Free().ok());
  MemoryWindow::Binding binding;
  binding.region = region;
  binding.address = reinterpret_cast<uint64_t>(bytes);
  binding.length = sizeof bytes;
  binding.access = verbs::kRemoteRead;
  verbs::Key key;
  EXPECT_EQ(window->Bind(*endpoint, binding, 1, 0, &key), InvalidHandle<MemoryRegion>());
}

TEST_F(UseOfTheFreedTest, ByMemory) {
  const Ref<ProtectionZone> zone = FreedZone();
  char bytes[64];
  Ref<MemoryRegion> region;
  EXPECT_EQ(MemoryRegion::Create(*adapter_, *zone, bytes, sizeof bytes, verbs::kLocalRead, &region),
            kNoZone);
  ASSERT_TRUE(
      MemoryRegion::Create(*adapter_, *zone_, bytes, sizeof bytes, verbs::kLocalRead, &region)
          .ok());
  EXPECT_EQ(region->Modify(*zone, verbs::kLocalWrite), kNoZone);
  EXPECT_EQ(region->zone().get(), zone_.get());
  EXPECT_EQ(region->access(), verbs::kLocalRead);
  Ref<MemoryWindow> window;
  EXPECT_EQ(MemoryWindow::Create(*zone, verbs::WindowScope::kDomain, &window), kNoZone);
  Ref<SharedReceiveQueue> queue;
  EXPECT_EQ(SharedReceiveQueue::Create(*adapter_, *zone, 8, 1, &queue), kNoZone);
}

// A freed object uses nothing any more, even while another call has a reference to it.
TEST_F(UseOfTheFreedTest, IsGivenUpAtOnce) {
  char bytes[64];
  Ref<MemoryRegion> region;
  ASSERT_TRUE(
      MemoryRegion::Create(*adapter_, *zone_, bytes, sizeof bytes, verbs::kLocalRead, &region)
          .ok());
  Ref<MemoryWindow> window;
  ASSERT_TRUE(MemoryWindow::Create(*zone_, verbs::WindowScope::kDomain, &window).ok());
  EXPECT_TRUE(window->Free().ok());
  EXPECT_EQ(zone_->Free().code, Code::kInvalidState) << "the region's";
  EXPECT_TRUE(region->Free().ok());
  EXPECT_EQ(region->Modify(*zone_, verbs::kLocalWrite), InvalidHandle<MemoryRegion>());
  EXPECT_TRUE(zone_->Free().ok());
}

TEST_F(UseOfTheFreedTest, IsGivenUpAtOnceByASharedReceiveQueue) {
  Ref<SharedReceiveQueue> queue;
  ASSERT_TRUE(SharedReceiveQueue::Create(*adapter_, *zone_, 8, 1, &queue).ok());
  EXPECT_EQ(zone_->Free(), InvalidState(StateDetail::kZoneInUse));
  EXPECT_TRUE(queue->Free().ok());
  EXPECT_TRUE(zone_->Free().ok());
  EXPECT_EQ(&queue->zone(), zone_.get()) << "what a query shows";
}

TEST_F(UseOfTheFreedTest, IsGivenUpAtOnceByAServicePoint) {
  const Ref<EventDispatcher> dispatcher = NewDispatcher(kRequestStream);
  Ref<ServicePoint> point;
  uint64_t qualifier = 0;
  ASSERT_TRUE(ServicePoint::CreatePublicAny(*adapter_, {}, *dispatcher, &qualifier, &point).ok());
  EXPECT_EQ(dispatcher->Free(), InvalidState(StateDetail::kDispatcherInUse));
  EXPECT_TRUE(point->Free().ok());
  EXPECT_TRUE(dispatcher->Free().ok());
  EXPECT_EQ(&point->dispatcher(), dispatcher.get()) << "what a query shows";
}

// A program may guess the handle of an adapter whose open is under way in another thread.
TEST(CloseDuringOpen, TheOpenFails) {
  Ref<InterfaceAdapter> adapter;
  ASSERT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter).ok());
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(EventDispatcher::Create(*adapter, 8, kAsyncStream, false, &dispatcher).ok());
  ASSERT_TRUE(adapter->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  EXPECT_EQ(adapter->SetAsyncDispatcher(*dispatcher, true).code, Code::kInvalidHandle);
  EXPECT_EQ(adapter->WatchDevice(nullptr).code, Code::kInvalidHandle);
}

}  // namespace
}  // namespace viaduct::core
