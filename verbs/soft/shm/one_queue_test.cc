// One completion queue for sends and receives: neither waits for ever behind the other.
#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

// The sender's polls are always full of sends: it posts one for each that completes.
TEST(OneQueueTest, AReceiveComesBehindTheSendsThatItMayAnswerAndNoOthers) {
  constexpr int kOut = 32, kMost = 16;
  constexpr uint64_t kAnswered = 1000, kPatience = 10'000;
  for (const int asked : {1, kMost}) {
    SCOPED_TRACE(asked);
    auto context = OpenForTest();
    TestEnd sender(*context, 4096, 2 * kOut, /*one_queue=*/true);
    TestEnd peer(*context, 4096, 2 * kOut, /*one_queue=*/true);
    TestListener listener(*context, [&]() -> QueuePair& { return peer.pair(); });
    sender.Receive(0, 0, 8);
    for (uint64_t i = 0; i < 2 * kOut; i++) peer.Receive(i, 0, 8);
    DialForTest(sender.pair(), listener.port());
    sender.Await(sender.connected);
    peer.Await(peer.connected);

    uint64_t sent = 0, completed = 0, arrived = 0;
    while (sent < kOut) sender.Send(sent++, 0, 8);
    bool answered = false;
    while (!answered && completed < kAnswered + kPatience) {
      Completion batch[kMost];
      for (int i = 0, n = sender.sends().Poll(batch, asked); i < n; i++) {
        ASSERT_EQ(batch[i].status, Status::kSuccess);
        if (batch[i].opcode == Opcode::kReceive) {
          answered = true;
          EXPECT_GE(completed, kAnswered) << "it answers a send that is still to come";
        } else {
          EXPECT_EQ(batch[i].id, completed++);
          sender.Send(sent++, 0, 8);
        }
      }
      for (int i = 0, n = peer.receives().Poll(batch, asked); i < n; i++) {
        ASSERT_EQ(batch[i].status, Status::kSuccess);
        if (batch[i].opcode != Opcode::kReceive) continue;
        peer.Receive(batch[i].id, 0, 8);
        if (++arrived == kAnswered) peer.Send(0, 0, 8);
      }
    }
    EXPECT_TRUE(answered);
  }
}

}  // namespace
}  // namespace viaduct::verbs::shm
