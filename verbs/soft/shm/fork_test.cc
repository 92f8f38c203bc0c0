// A forked child: the parent's death is noticed by the peer although the child lives.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

TEST(ForkTest, AChildKeepsNothingOpenAndDoesNoHarm) {
  ChildProcess victim([](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    end.Await(end.connected);
    const pid_t child = fork();
    if (child == 0) {
      // Posting and polling in the child touch nothing of the parent.
      end.Send(1, 0, 64);
      Completion completion;
      end.sends().Poll(&completion, 1);
      end.receives().Poll(&completion, 1);
      for (;;) pause();
    }
    parent.PutValue(child);
    for (;;) pause();
    return 0;
  });
  ChildProcess survivor([&victim](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context);
    end.Receive(1, 0, 64);
    DialForTest(end.pair(), victim.GetValue<uint16_t>());
    end.Await(end.connected);
    const auto grandchild = victim.GetValue<pid_t>();
    kill(victim.pid(), SIGKILL);
    end.Await(end.disconnected);
    const bool alive = kill(grandchild, 0) == 0;
    kill(grandchild, SIGKILL);
    parent.PutValue(1);
    if (end.cause != DisconnectCause::kBroken) return 1;
    if (end.Next(end.receives()).status != Status::kFlushed) return 2;
    return alive ? 0 : 3;
  });
  EXPECT_EQ(survivor.Wait(), 0);
  victim.Kill();
}

}  // namespace
}  // namespace viaduct::verbs::shm
