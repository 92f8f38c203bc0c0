// A thread that waits on an RDMA device sleeps in the device's channel, so no other thread has to
// wake it. When it leaves, it passes the channel on.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/sees_threads_only.h"
#include "tests/conformance/harness/sleeper.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/asked.h"
#include "tests/rdma_mock/mishaps.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/clock.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs {
namespace {

using tests::Sleeper;

// More queues than a process has channels for single queues.
constexpr int kManyQueues = 80;

End* interrupted = nullptr;

class WaitsTest : public MishapsTest {
 protected:
  void SetUp() override { NewPair(); }
  // A new connection for what follows. `receiver`: the options of the end that waits.
  void NewPair(const EndOptions& receiver = {}) {
    from_ = &NewEnd(a());
    to_ = &NewEnd(b(), receiver);
    Connect(*from_, *to_);
    Forget(*to_);
  }

  CompletionQueue& queue() { return to_->receives().queue(); }
  Deadline Later(Nanos time = 60 * kNanosPerSecond) {
    return Deadline::After(a().executor(), time);
  }
  WaitResult Wait() { return queue().Wait(Later(), queue().wakes()); }
  void Send() {
    ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from_->Send(2, 0, 8), PostResult::kOk);
  }

  // A message ends a wait without the control thread.
  void ExpectWoken() {
    std::atomic<WaitResult> result{WaitResult::kTimedOut};
    Sleeper sleeper([&] { result = Wait(); });
    BusyControlThread busy;
    sleeper.AwaitAsleep();
    Send();
    sleeper.Join();
    busy.LetGo();
    EXPECT_EQ(result, WaitResult::kReady);
    Expect(to_->receives(), 1);
    Expect(from_->sends(), 2);
  }

  End* from_ = nullptr;
  End* to_ = nullptr;
};

TEST_F(WaitsTest, TheDeviceWakesWhoSleeps) {
  for (int i = 0; i < 3; ++i) ExpectWoken();
}

// Arming is a system call on many devices, and a queue that is armed in vain reports what has been
// taken already.
TEST_F(WaitsTest, WhoIsWokenLooksBeforeHeArmsAgain) {
  Sleeper sleeper([&] { EXPECT_EQ(Wait(), WaitResult::kReady); });
  BusyControlThread busy;
  sleeper.AwaitAsleep();
  const int before = rdma_mock::AskedArms();
  Send();
  sleeper.Join();
  EXPECT_EQ(rdma_mock::AskedArms(), before);
}

TEST_F(WaitsTest, AWakeReachesWhoSleeps) {
  std::atomic<WaitResult> result{WaitResult::kTimedOut};
  Sleeper sleeper([&] { result = Wait(); });
  BusyControlThread busy;
  sleeper.AwaitAsleep();
  queue().Wake();
  sleeper.Join();
  EXPECT_EQ(result, WaitResult::kWoken);
}

TEST_F(WaitsTest, TimePassesForWhoSleeps) {
  const Nanos begun = a().executor().Now();
  constexpr Nanos kTime = 5 * kNanosPerMilli;
  EXPECT_EQ(queue().Wait(Deadline::At(begun + kTime), queue().wakes()), WaitResult::kTimedOut);
  EXPECT_GE(a().executor().Now(), begun + kTime);
  ExpectWoken();
}

// Each waiter takes one message. The one that has slept in the channel leaves, and the others are
// woken all the same.
TEST_F(WaitsTest, TheNextWaiterTakesThePlace) {
  std::atomic<int> taken{0};
  const auto take_one = [&] {
    Completion completion;
    while (queue().Poll(&completion, 1) == 0) {
      if (Wait() == WaitResult::kTimedOut) return;
    }
    ++taken;
  };
  std::vector<std::unique_ptr<Sleeper>> sleepers;
  for (int i = 0; i < 3; ++i) sleepers.push_back(std::make_unique<Sleeper>(take_one));
  BusyControlThread busy;
  for (const auto& sleeper : sleepers) sleeper->AwaitAsleep();
  for (size_t i = 0; i < sleepers.size(); ++i) Send();
  for (const auto& sleeper : sleepers) sleeper->Join();
  EXPECT_EQ(taken, 3);
}

// The signal handler interrupts the sleep, and its thread already has the place in the channel.
TEST_F(WaitsTest, AHandlerMayWaitWhereItsThreadSleeps) {
  if (tests::kSeesThreadsOnly) GTEST_SKIP() << "ThreadSanitizer defers handlers";
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {
    CompletionQueue& queue = interrupted->receives().queue();
    const Deadline soon = Deadline::After(interrupted->context().executor(), kNanosPerMilli);
    EXPECT_EQ(queue.Wait(soon, queue.wakes()), WaitResult::kTimedOut);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, &before);
  interrupted = to_;
  std::atomic<WaitResult> first{WaitResult::kTimedOut}, second{WaitResult::kTimedOut};
  std::atomic<pthread_t> id{};
  Sleeper sleeper([&] {
    id = pthread_self();
    first = Wait();
    second = Wait();
  });
  BusyControlThread busy;
  sleeper.AwaitAsleep();
  pthread_kill(id, SIGUSR1);
  while (first == WaitResult::kTimedOut) sched_yield();
  sleeper.AwaitAsleep();
  Send();
  sleeper.Join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(first, WaitResult::kInterrupted);
  EXPECT_EQ(second, WaitResult::kReady);
}

TEST_F(WaitsTest, WhoIsCancelledInHisSleepLeavesThePlace) {
  if (tests::kSeesThreadsOnly) GTEST_SKIP() << tests::kLosesTheCancelled;
  for (int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    tests::CancelAsleep(type, [this] {
      const CancellationAsleep only_there;
      Wait();
    });
    ExpectWoken();
  }
}

// After the wait nobody polls any more.
TEST_F(WaitsTest, TheSinkIsCalledBehindAWait) {
  CompletionCounter counter;
  EndOptions options;
  options.sink = &counter;
  NewPair(options);
  for (int i = 0; i < 3; ++i) {
    ExpectWoken();
    const int before = counter.calls;
    // By then the control thread has most likely seen that nobody polls.
    const Nanos later = b().executor().Now() + 10 * kNanosPerMilli;
    ASSERT_EQ(to_->Receive(1, 0, 8), PostResult::kOk);
    b().executor().RunAt(later, [this] { EXPECT_EQ(from_->Send(2, 0, 8), PostResult::kOk); });
    EXPECT_TRUE(Run([&] { return counter.calls > before; }));
    Expect(to_->receives(), 1);
    Expect(from_->sends(), 2);
  }
  DestroyEnds();
}

// The sleeper takes the event from the device, and the sink is called too, although the sleeper
// goes on waiting.
TEST_F(WaitsTest, AnArmedSinkIsCalledBesideAWaiter) {
  CompletionCounter counter;
  Sleeper sleeper([&] {
    const Deadline end = Later(10 * kNanosPerSecond);
    do {
      EXPECT_EQ(Wait(), WaitResult::kReady);
    } while (counter.calls == 0 && !end.Passed(a().executor()));
  });
  sleeper.AwaitAsleep();
  queue().Arm(counter);
  DrainExecutors();
  sleeper.AwaitAsleep();
  Send();
  sleeper.Join();
  EXPECT_GT(counter.calls, 0);
  DestroyEnds();
}

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  for (int fd = 0; fd < 2 * kHighFd; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) open.push_back(fd);
  }
  return open;
}

// The child inherits the place of a thread that it does not have, and the descriptors of this place
// are closed in the child.
TEST_F(WaitsTest, AForkedChildWakesNobody) {
  Sleeper sleeper([&] { EXPECT_EQ(Wait(), WaitResult::kReady); });
  sleeper.AwaitAsleep();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::vector<int> open = OpenDescriptors();
  const pid_t child = fork();
  if (child == 0) {
    for (int fd : open) {
      if (fcntl(fd, F_GETFD) < 0) dup2(ends[1], fd);
    }
    queue().Wake();
    char byte;
    _exit(read(ends[0], &byte, 1) < 0 && errno == EAGAIN ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int end : ends) close(end);
  Send();
  sleeper.Join();
}

// The library of a device that was taken out destroys neither a queue nor its channel.
TEST_F(WaitsTest, NoDescriptorOfAChannelIsLeft) {
  const auto destroy = [this] {
    DestroyEnds();
    EXPECT_TRUE(Run([] { return rdma_mock::LiveDomains() == 0; }));
    DrainExecutors();
  };
  destroy();
  const std::vector<int> before = OpenDescriptors();
  NewPair();
  rdma_mock::KeepQueues(true);
  destroy();
  EXPECT_EQ(OpenDescriptors(), before);
}

// Such queues share the device's channel, which the control thread reads.
TEST_F(WaitsTest, QueuesWithoutAChannelOfTheirOwnWakeToo) {
  for (int i = 0; i < kManyQueues; ++i) NewPair();
  Sleeper sleeper([&] { EXPECT_EQ(Wait(), WaitResult::kReady); });
  sleeper.AwaitAsleep();
  Send();
  sleeper.Join();
  DestroyEnds();
  NewPair();
  ExpectWoken();  // the channels of the earlier queues are free again
}

}  // namespace
}  // namespace viaduct::verbs
