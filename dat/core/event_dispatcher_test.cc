// What a dispatcher does by itself; what the interfaces show of it is in tests/conformance.
#include "dat/core/event_dispatcher.h"

#include <cstdint>

#include "dat/core/interface_adapter.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/pass_lock.h"

namespace viaduct::core {
namespace {

constexpr uint32_t kLength = 8;

class EventDispatcherTest : public ::testing::Test {
 protected:
  EventDispatcherTest() {
    EXPECT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter_).ok());
  }
  ~EventDispatcherTest() override {
    EXPECT_TRUE(adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  }

  Ref<InterfaceAdapter> adapter_;
};

// Nor does it keep anybody waiting: who queues an event needs the lock.
TEST_F(EventDispatcherTest, APollWithoutCompletionsWaitsForNobody) {
  for (uint32_t stream : {kSoftwareStream, kRequestStream, kConnectionStream, kAsyncStream}) {
    Ref<EventDispatcher> dispatcher;
    ASSERT_TRUE(EventDispatcher::Create(*adapter_, kLength, stream, false, &dispatcher).ok());
    Event event;
    const verbs::PassLockHolder held(&dispatcher->device_queue().lock());
    EXPECT_EQ(dispatcher->Dequeue(&event).code, Code::kQueueEmpty) << stream;
  }
}

}  // namespace
}  // namespace viaduct::core
