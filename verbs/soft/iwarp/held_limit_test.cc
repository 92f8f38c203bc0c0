// How many messages without a receive a link takes in.
#include <cstdint>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/device.h"
#include "verbs/soft/iwarp/testing_device.h"

namespace viaduct::verbs::iwarp {
namespace {

// Polls do not read on beyond the limit: TCP stops the sender.
TEST(HeldLimitTest, PollsDoNotReadBeyondIt) {
  constexpr uint32_t kMessages = 500;
  constexpr uint32_t kSize = 100'000;  // in total more than TCP has buffers for
  constexpr Nanos kIdle = 100'000'000;
  TestEnd sender;
  TestEnd receiver;
  ConnectEnds(sender, receiver);
  for (uint32_t i = 0; i < kMessages; ++i) sender.Send(i, 0, kSize);
  uint32_t sent = 0;
  Completion completion;
  for (Nanos last = sender.loop.Now(); sender.loop.Now() - last < kIdle && sent < kMessages;) {
    EXPECT_EQ(receiver.receive_queue().Poll(&completion, 1), 0);
    if (sender.send_queue->Poll(&completion, 1) == 0) continue;
    ++sent;
    last = sender.loop.Now();
  }
  EXPECT_LT(sent, kMessages);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
