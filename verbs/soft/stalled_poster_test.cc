// The machine stops a poster in the middle of a post: whoever cools the pair does not wait for it.
#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/device.h"
#include "verbs/soft/context.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_wire.h"

namespace viaduct::verbs {
namespace {

void Await(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

// A poster whose request has to wait stays in Pump until Release.
class StallingLink final : public ReadingLink {
 public:
  using ReadingLink::ReadingLink;
  SoftQueuePair& pair() { return pair_; }
  void Release() { released_.store(true); }

  std::atomic<bool> stalled{false};

  void Pump() override {
    ReadingLink::Pump();
    if (!pair_.SendsUnemitted() || released_.load()) return;
    stalled.store(true);
    Await(released_);
  }

 private:
  std::atomic<bool> released_{false};
};

// Waits until the poll in progress is over, and the one that it has asked for.
void Settle(ControlThread& loop) {
  loop.Drain();
  loop.Drain();
}

// What a wire does when something has arrived: leaves it to the pair's queue, or attends at once.
enum class News { kMarked, kAttended };

class StalledPosterTest : public testing::TestWithParam<News> {};

// The read ends while the poster of the fenced request after it, which saw the read unfinished,
// still has the lock. Nobody polls.
TEST_P(StalledPosterTest, AReadEndsBesideIt) {
  ControlThread& loop = **ControlThread::Get();
  std::unique_ptr<StallingLink> link;
  const TestOutcome outcome = [](SoftQueuePair& pair, const Link& made) {
    pair.SetReadsOut(1);
    pair.Established(made, {});
  };
  SoftContext context(TestWireOptions(loop, link, outcome));
  shm::TestEnd end(context);
  shm::DialForTest(end.pair(), 1);
  end.Await(end.connected);
  Settle(loop);

  end.OneSided(Opcode::kRead, 1, 0, 8, 0, 0);
  std::thread poster([&] { end.Send(2, 8, 8, kFence); });
  Await(link->stalled);
  link->Answer();
  if (GetParam() == News::kMarked) {
    link->pair().MarkArrived();
  } else {
    loop.Post([&] { link->pair().Attend(); });
  }
  Await(link->answered);
  Settle(loop);
  EXPECT_FALSE(link->sent.load());
  link->Release();
  poster.join();
  Await(link->sent);
  EXPECT_EQ(end.Next(end.sends()).id, 1u);
  EXPECT_EQ(end.Next(end.sends()).id, 2u);
}

INSTANTIATE_TEST_SUITE_P(Wires, StalledPosterTest, testing::Values(News::kMarked, News::kAttended));

}  // namespace
}  // namespace viaduct::verbs
