// When polls of one of a pair's queues may heat the pair, which means that each poll checks its
// link: not while a thread sleeps on the pair's other queue.
#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/device.h"
#include "verbs/soft/completion_queue.h"
#include "verbs/soft/context.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_wire.h"

namespace viaduct::verbs {
namespace {

// Emits into the void.
class CountingLink final : public Link {
 public:
  explicit CountingLink(SoftQueuePair& pair) : pair_(pair) {}
  std::atomic<int> heats{0};

  void Pump() override {
    while (pair_.NextToEmit() != nullptr) pair_.Emitted(SoftQueuePair::Completes::kNow);
  }
  bool Poll(int) override { return false; }
  bool Arrived() const override { return false; }
  bool AllTaken() const override { return true; }
  void Start() override {}
  void Heat() override { heats++; }
  bool Cool() override { return false; }
  void Disconnect(Status) override {}

 private:
  SoftQueuePair& pair_;
};

class HeatTest : public testing::Test {
 protected:
  HeatTest() : context_(TestWireOptions(loop_, link_, outcome_)), end_(context_) {
    shm::DialForTest(end_.pair(), 1);
    end_.Await(end_.connected);
    loop_.Drain();  // a connection is reported before its link has started
  }
  // Sends, polls the send queue until it finds the completion, and returns how often this heated.
  int HeatsOfASend() {
    const int before = link_->heats;
    end_.Send(1, 0, 8);
    end_.Next(end_.sends());
    return link_->heats - before;
  }

  ControlThread& loop_ = **ControlThread::Get();
  std::unique_ptr<CountingLink> link_;
  const TestOutcome outcome_ = [](SoftQueuePair& pair, const Link& link) {
    pair.Established(link, {});
  };
  SoftContext context_;
  shm::TestEnd end_;
};

TEST_F(HeatTest, APollThatDeliversHeats) { EXPECT_EQ(HeatsOfASend(), 1); }

TEST_F(HeatTest, NotWhileAThreadSleepsOnTheOtherQueue) {
  const uint32_t wakes = end_.receives().wakes();
  std::thread sleeper(
      [&] { EXPECT_EQ(end_.receives().Wait(Deadline::Infinite(), wakes), WaitResult::kWoken); });
  while (!static_cast<SoftCompletionQueue&>(end_.receives()).HasSleepers()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(HeatsOfASend(), 0);
  end_.receives().Wake();
  sleeper.join();
  EXPECT_EQ(HeatsOfASend(), 1);
}

TEST_F(HeatTest, NotWhileTheOtherQueueIsArmed) {
  struct Sink final : CompletionSink {
    void OnCompletions(CompletionQueue&) override {}
  } sink;
  end_.receives().Arm(sink);
  EXPECT_EQ(HeatsOfASend(), 0);
}

}  // namespace
}  // namespace viaduct::verbs
