// The order in which a queue of ours hands out what an RDMA device has completed, for a program
// that takes both directions from one queue.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "verbs/base/busy_control_thread.h"

namespace viaduct::verbs {
namespace {

class OrderTest : public MishapsTest {
 protected:
  static constexpr uint32_t kSegments = 20;  // more than the device takes: such a send is gathered

  void SetUp() override {
    Connect(here_, peer_);
    Forget(here_);
  }
  ~OrderTest() override { DestroyEnds(); }  // before the inbox

  static EndOptions Shared(Inbox* inbox) {
    EndOptions options;
    options.shared_inbox = inbox;
    options.max_segments = kSegments;
    return options;
  }

  // The peer sends one message and knows that it was taken.
  void Answer(uint64_t id) {
    ASSERT_EQ(peer_.Send(id, 0, 8, kConfirm), PostResult::kOk);
    Expect(peer_.sends(), id);
  }

  std::vector<uint64_t> Take(int n) {
    std::vector<Completion> found(n);
    found.resize(inbox_.queue().Poll(found.data(), n));
    std::vector<uint64_t> ids;
    for (const Completion& completion : found) ids.push_back(completion.id);
    return ids;
  }

  Inbox inbox_{a()};
  End& here_ = NewEnd(a(), Shared(&inbox_));
  End& peer_ = NewEnd(b());
};

using Ids = std::vector<uint64_t>;

// More is to be done for a send that was gathered than to show it; nothing may go past it
// meanwhile.
TEST_F(OrderTest, AGatheredSendIsFoundBeforeItsAnswer) {
  ASSERT_EQ(peer_.Receive(1, 0, 4 * kSegments), PostResult::kOk);
  ASSERT_EQ(here_.Receive(2, 1000, 8), PostResult::kOk);
  BusyControlThread busy;  // which would take them one after the other
  std::vector<Segment> list;
  for (uint32_t i = 0; i < kSegments; ++i) list.push_back(here_.At(size_t{8} * i, 4));
  ASSERT_EQ(here_.Send(3, list), PostResult::kOk);
  Expect(peer_.receives(), 1);
  Answer(4);
  EXPECT_EQ(Take(3), (Ids{3, 2}));
}

// What a wait has found is handed out with sends first.
TEST_F(OrderTest, AWaitKeepsASendBeforeItsAnswer) {
  for (int id : {10, 11}) ASSERT_EQ(here_.Receive(id, 1000, 8), PostResult::kOk);
  ASSERT_EQ(peer_.Receive(1, 0, 8), PostResult::kOk);
  BusyControlThread busy;
  Answer(5);
  ASSERT_EQ(here_.Send(3, 0, 8), PostResult::kOk);
  Expect(peer_.receives(), 1);
  Answer(6);
  CompletionQueue& queue = inbox_.queue();
  ASSERT_EQ(queue.Wait(Deadline::At(0), queue.wakes()), WaitResult::kReady);
  EXPECT_EQ(Take(4), (Ids{3, 10, 11}));
}

}  // namespace
}  // namespace viaduct::verbs
