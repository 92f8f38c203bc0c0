// A waiter sleeps as long as there is nothing for it.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include <cerrno>
#include <functional>

#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"
#include "verbs/base/clock.h"
#include "verbs/soft/shm/testing_node.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace viaduct::verbs::shm {
namespace {

constexpr Nanos kWaited = 500'000'000;

Nanos NowOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * Nanos{1'000'000'000} + now.tv_nsec;
}

// Waits kWaited on `queue`, which gets nothing. Returns the processor time that this took.
Nanos CostOfWaiting(CompletionQueue& queue) {
  const Nanos before = NowOf(CLOCK_THREAD_CPUTIME_ID);
  const Nanos end = NowOf(CLOCK_MONOTONIC) + kWaited;
  EXPECT_EQ(queue.Wait(Deadline::At(end), queue.wakes()), WaitResult::kTimedOut);
  return NowOf(CLOCK_THREAD_CPUTIME_ID) - before;
}

// `body` has an end that is connected to a process which posts a receive for each int it gets.
void RunWithReceiver(const std::function<int(TestEnd&, ChildProcess&)>& body) {
  ChildProcess receiver([](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    end.Await(end.connected);
    for (uint64_t i = 0; parent.GetValue<int>() != 0; i++) {
      end.Receive(i, 0, 64);
      end.Next(end.receives());
    }
    return 0;
  });
  ChildProcess sender([&](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    DialForTest(end.pair(), receiver.GetValue<uint16_t>());
    end.Await(end.connected);
    const int result = body(end, receiver);
    receiver.PutValue(0);
    return testing::Test::HasFailure() ? 99 : result;
  });
  EXPECT_EQ(sender.Wait(), 0);
  EXPECT_EQ(receiver.Wait(), 0);
}

TEST(WaitTest, AnOutstandingConfirmationCostsNothing) {
  RunWithReceiver([](TestEnd& end, ChildProcess& receiver) {
    for (uint64_t i = 0; i < 3; i++) {
      end.Send(i, 0, 8, kConfirm);
      EXPECT_LT(CostOfWaiting(end.sends()), kWaited / 10);
      receiver.PutValue(1);
      const Completion sent = end.Next(end.sends());
      if (sent.id != i || sent.status != Status::kSuccess) return 1;
    }
    return 0;
  });
}

// As kernels before Linux 5.16.
TEST(WaitTest, AKernelThatCannotWaitForManyCostsNothing) {
  RunWithReceiver([](TestEnd& end, ChildProcess& receiver) {
    if (!ForbidCalls({SYS_futex_waitv}, ENOSYS)) return 0;  // no filters of system calls here
    EXPECT_LT(CostOfWaiting(end.receives()), kWaited / 10);
    receiver.PutValue(1);
    end.Send(1, 0, 8, kConfirm);
    return end.Next(end.sends()).status == Status::kSuccess ? 0 : 1;
  });
}

// The request waits for the read, not for room.
TEST(WaitTest, ARequestBehindAFenceCostsNothing) {
  RunWithReceiver([](TestEnd& end, ChildProcess& receiver) {
    receiver.PutValue(1);
    end.Send(1, 0, 8, kConfirm);
    if (end.Next(end.sends()).status != Status::kSuccess) return 1;
    // Held without a receive, and so is the read after it.
    end.Send(2, 0, 8);
    if (end.Next(end.sends()).id != 2) return 2;
    end.OneSided(Opcode::kRead, 3, 0, 0, 0, 0);
    end.Send(4, 0, 8, kFence | kConfirm);
    EXPECT_LT(CostOfWaiting(end.sends()), kWaited / 10);
    receiver.PutValue(1);
    if (end.Next(end.sends()).id != 3) return 3;
    EXPECT_LT(CostOfWaiting(end.sends()), kWaited / 10);
    receiver.PutValue(1);
    return end.Next(end.sends()).id == 4 ? 0 : 4;
  });
}

// The same while nobody waits: the pair was polled a moment ago, and ticks do not go on for ever.
TEST(WaitTest, ARequestBehindAFenceCoolsDown) {
  RunWithReceiver([](TestEnd& end, ChildProcess& receiver) {
    receiver.PutValue(1);
    end.Send(1, 0, 8, kConfirm);
    if (end.Next(end.sends()).status != Status::kSuccess) return 1;
    end.Send(2, 0, 8);
    if (end.Next(end.sends()).id != 2) return 2;
    end.OneSided(Opcode::kRead, 3, 0, 0, 0, 0);
    end.Send(4, 0, 8, kFence);
    Completion completion;
    if (end.sends().Poll(&completion, 1) != 0) return 3;
    const timespec pause = {0, kWaited};
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    nanosleep(&pause, nullptr);
    getrusage(RUSAGE_SELF, &after);
    // Ticks come every millisecond.
    EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 100);
    receiver.PutValue(1);
    if (end.Next(end.sends()).id != 3) return 4;
    receiver.PutValue(1);
    return end.Next(end.sends()).id == 4 ? 0 : 5;
  });
}

}  // namespace
}  // namespace viaduct::verbs::shm
