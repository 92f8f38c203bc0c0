// Who is notified of news while another thread sleeps that does not know of the peer which brings
// them.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"
#include "verbs/base/clock.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

constexpr int kRounds = 5;

// Waits until thread `id` sleeps in the kernel.
void AwaitAsleep(pid_t id) {
  for (std::string state; state != "S"; std::this_thread::yield()) {
    std::string line;
    std::getline(std::ifstream(absl::StrCat("/proc/self/task/", id, "/stat")), line);
    // The state follows the name, which may have anything in it.
    state = line.substr(line.rfind(')') + 2, 1);
  }
}

// Takes every completion, and tells the parent how many it has taken by now.
class Teller final : public CompletionSink {
 public:
  explicit Teller(ChildProcess& parent) : parent_(parent) {}
  void OnCompletions(CompletionQueue& queue) override {
    Completion completion;
    while (queue.Poll(&completion, 1) == 1) parent_.PutValue(++taken_);
  }

 private:
  ChildProcess& parent_;
  int taken_ = 0;
};

// The message finds the receiver quiet: no thread of its program polls, and no tick does.
void SendWhenQuiet(TestEnd& end, uint64_t id) {
  const timespec pause = {0, 30'000'000};
  nanosleep(&pause, nullptr);
  end.Send(id, 0, 8);
}

TEST(BellsTest, ASleeperThatWasThereBeforeThePeer) {
  ChildProcess receiver([](ChildProcess& parent) {
    auto context = OpenForTest();
    auto idle = *context->CreateCompletionQueue(nullptr);
    std::atomic<pid_t> sleeper{0};
    std::thread thread([&] {
      sleeper = gettid();
      idle->Wait(Deadline::Infinite(), 0);
    });
    while (sleeper == 0) std::this_thread::yield();
    AwaitAsleep(sleeper);
    TestEnd end(*context);
    Teller teller(parent);
    for (uint64_t i = 0; i < kRounds; i++) end.Receive(i, 0, 64);
    end.receives().Arm(teller);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    parent.GetValue<int>();
    idle->Wake();
    thread.join();
    end.DestroyPair();
    return 0;
  });
  ChildProcess sender([&](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    DialForTest(end.pair(), receiver.GetValue<uint16_t>());
    end.Await(end.connected);
    for (int i = 1; i <= kRounds; i++) {
      SendWhenQuiet(end, i);
      if (receiver.GetValue<int>() != i) return i;
    }
    receiver.PutValue(0);
    return 0;
  });
  EXPECT_EQ(sender.Wait(), 0);
  EXPECT_EQ(receiver.Wait(), 0);
}

TEST(BellsTest, AMessageWakesOneBesideWhomItIsFor) {
  ChildProcess receiver([](ChildProcess& parent) {
    constexpr int kSleepers = 64;
    auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    end.Await(end.connected);
    std::vector<std::unique_ptr<CompletionQueue>> idle;
    std::vector<std::thread> threads;
    for (int i = 0; i < kSleepers; i++) {
      CompletionQueue& queue = *idle.emplace_back(*context->CreateCompletionQueue(nullptr));
      std::atomic<pid_t> sleeper{0};
      threads.emplace_back([&] {
        CompletionQueue& mine = queue;
        sleeper = gettid();
        mine.Wait(Deadline::Infinite(), 0);
      });
      while (sleeper == 0) std::this_thread::yield();
      AwaitAsleep(sleeper);
    }
    rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 1; i <= kRounds; i++) {
      end.Receive(i, 0, 64);
      parent.PutValue(i);
      end.Next(end.receives());
    }
    getrusage(RUSAGE_SELF, &after);
    // This includes the switches of the control thread, which ticks for a while.
    EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, kRounds * kSleepers / 2);
    for (auto& queue : idle) queue->Wake();
    for (std::thread& thread : threads) thread.join();
    end.DestroyPair();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  ChildProcess sender([&](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    DialForTest(end.pair(), receiver.GetValue<uint16_t>());
    end.Await(end.connected);
    for (int i = 1; i <= kRounds; i++) SendWhenQuiet(end, receiver.GetValue<int>());
    end.Await(end.disconnected);
    return 0;
  });
  EXPECT_EQ(sender.Wait(), 0);
  EXPECT_EQ(receiver.Wait(), 0);
}

// The kernel has no memory for the message that rings, and the sender does nothing more.
TEST(BellsTest, ARingThatCannotBeSentIsSentLater) {
  ChildProcess receiver([](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context);
    Teller teller(parent);
    end.Receive(1, 0, 64);
    end.receives().Arm(teller);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    end.Await(end.connected);
    parent.GetValue<int>();
    end.DestroyPair();
    return 0;
  });
  ChildProcess sender([&](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    DialForTest(end.pair(), receiver.GetValue<uint16_t>());
    end.Await(end.connected);
    // Only for this thread, not for the control thread, which was started before.
    if (!ForbidCalls({SYS_sendto}, ENOBUFS)) return 1;
    errno = ENOENT;
    SendWhenQuiet(end, 1);
    if (errno != ENOENT) return 3;  // a poster's errno must not change
    if (receiver.GetValue<int>() != 1) return 2;
    receiver.PutValue(0);
    return 0;
  });
  EXPECT_EQ(sender.Wait(), 0);
  EXPECT_EQ(receiver.Wait(), 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
