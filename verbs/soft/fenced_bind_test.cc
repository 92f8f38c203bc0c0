// A bind with a fence opens its window when the reads before it are complete, and no earlier.
#include <cstdint>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/device.h"
#include "verbs/soft/context.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/region_table.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_wire.h"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kBytes = 8;

class FencedBindTest : public testing::TestWithParam<bool> {};

TEST_P(FencedBindTest, WaitsForTheReadBeforeIt) {
  const bool fenced = GetParam();
  ControlThread& loop = **ControlThread::Get();
  std::unique_ptr<ReadingLink> link;
  const TestOutcome outcome = [](SoftQueuePair& pair, const Link& made) {
    pair.SetReadsOut(1);
    pair.Established(made, {});
  };
  SoftContext::Options options = TestWireOptions(loop, link, outcome);
  options.attributes.max_regions = 2;  // the window counts as one
  SoftContext context(std::move(options));
  shm::TestEnd end(context);
  shm::DialForTest(end.pair(), 1);
  end.Await(end.connected);
  loop.Drain();

  auto window = context.CreateWindow(end.domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok()) << window.status();
  end.OneSided(Opcode::kRead, 1, 0, kBytes, 0, 0);
  BindRequest bind;
  bind.id = 2;
  bind.flags = fenced ? kFence : 0;
  bind.window = window->get();
  bind.region = end.key();
  bind.address = reinterpret_cast<uint64_t>(end.memory().data());
  bind.length = kBytes;
  bind.access = kRemoteRead;
  Key key = 0;
  ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
  const auto is_open = [&] {
    return context.regions().Resolve(key, bind.address, kBytes, kRemoteRead, kWildcardDomain) !=
           nullptr;
  };
  EXPECT_EQ(is_open(), !fenced);
  link->Answer();
  for (uint64_t id : {1, 2}) {
    const Completion done = end.Next(end.sends());
    EXPECT_EQ(done.id, id);
    EXPECT_EQ(done.status, Status::kSuccess);
  }
  EXPECT_TRUE(is_open());
}

INSTANTIATE_TEST_SUITE_P(Fences, FencedBindTest, testing::Bool());

}  // namespace
}  // namespace viaduct::verbs
