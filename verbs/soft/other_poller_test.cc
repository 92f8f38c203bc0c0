// Two threads poll the two queues of a pair: what one of them meets in the link ends the pair for
// the other one, too, which was about to look.
#include <atomic>
#include <memory>

#include "gtest/gtest.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/control_thread.h"
#include "verbs/device.h"
#include "verbs/soft/context.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_wire.h"

namespace viaduct::verbs {
namespace {

// While a poller looks whether something has arrived, another one meets a request that breaks the
// pair.
class BreakingLink final : public ReadingLink {
 public:
  using ReadingLink::ReadingLink;
  std::atomic<bool> breaks{false};
  std::atomic<int> polls{0};

  bool Poll(int) override {
    ++polls;
    return false;
  }
  bool Arrived() const override {
    if (!breaks) return false;
    pair_.Fail(Status::kTransport);
    return true;
  }
};

TEST(OtherPollerTest, NothingIsTakenBehindWhatEndsThePair) {
  ControlThread& loop = **ControlThread::Get();
  std::unique_ptr<BreakingLink> link;
  const TestOutcome outcome = [](SoftQueuePair& pair, const Link& made) {
    pair.Established(made, {});
  };
  SoftContext context(TestWireOptions(loop, link, outcome));
  shm::TestEnd end(context);
  shm::DialForTest(end.pair(), 1);
  end.Await(end.connected);
  loop.Drain();  // a connection is reported before its link has started
  end.Send(1, 0, 8);
  end.Next(end.sends());  // from now on each poll of either queue serves the link
  const BusyControlThread busy;
  const int before = link->polls;
  link->breaks = true;
  Completion none;
  EXPECT_EQ(end.sends().Poll(&none, 1), 0);
  EXPECT_TRUE(end.pair().Ended());
  EXPECT_EQ(link->polls, before);
}

}  // namespace
}  // namespace viaduct::verbs
