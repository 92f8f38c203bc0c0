// What a dispatcher does by itself; what the interfaces show of it is in tests/conformance.
#include "dat/core/event_dispatcher.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "dat/core/interface_adapter.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/clock.h"
#include "verbs/base/pass_lock.h"

namespace {

thread_local int yields = 0;

}  // namespace

// In place of libc's, to count the calls.
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(syscall(SYS_sched_yield));
}

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

// Nor does it make anybody wait: whoever queues an event needs the lock, which it does not take.
TEST_F(EventDispatcherTest, APollWithoutCompletionsWaitsForNobody) {
  for (uint32_t stream : {kSoftwareStream, kRequestStream, kConnectionStream, kAsyncStream}) {
    Ref<EventDispatcher> dispatcher;
    ASSERT_TRUE(EventDispatcher::Create(*adapter_, kLength, stream, false, &dispatcher).ok());
    Event event;
    const verbs::PassLockHolder held(&dispatcher->device_queue().lock());
    EXPECT_EQ(dispatcher->Dequeue(&event).code, Code::kQueueEmpty) << stream;
  }
}

TEST_F(EventDispatcherTest, AWaitThatIsWokenAllTheTimeEndsInTime) {
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(
      EventDispatcher::Create(*adapter_, kLength, kSoftwareStream, false, &dispatcher).ok());
  const verbs::Deadline deadline = adapter_->DeadlineAfter(20 * verbs::kNanosPerMilli);
  const auto wake = [&] {
    dispatcher->Wake();
    return false;
  };
  EXPECT_EQ(dispatcher->WaitUntil(deadline, wake).code, Code::kTimeout);
}

// A poll that finds nothing yields its processor to the control thread, but only while that thread
// has work.
TEST_F(EventDispatcherTest, APollInVainGivesWayToTheControlThread) {
  Ref<EventDispatcher> dispatcher;
  ASSERT_TRUE(
      EventDispatcher::Create(*adapter_, kLength, kConnectionStream, false, &dispatcher).ok());
  const auto yields_in_a_poll = [&] {
    Event event;
    const int before = yields;
    EXPECT_EQ(dispatcher->Dequeue(&event).code, Code::kQueueEmpty);
    return yields - before;
  };
  {
    verbs::BusyControlThread busy;
    EXPECT_EQ(yields_in_a_poll(), 1);
  }
  // The control thread falls asleep soon.
  const verbs::Nanos end = verbs::MonotonicNow() + 20 * verbs::kNanosPerSecond;
  while (yields_in_a_poll() != 0) ASSERT_LT(verbs::MonotonicNow(), end);
}

}  // namespace
}  // namespace viaduct::core
