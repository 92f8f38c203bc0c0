// Two calls that free one object: each holds a reference when it finds out which was first.
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

}  // namespace
}  // namespace viaduct::core
