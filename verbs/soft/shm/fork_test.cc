// Forked children: the peer notices the parent's death although a child lives, and a child may be
// born at any moment.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <thread>

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
      alarm(60);  // if nobody kills it
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

// A pair that delivers to its poller becomes hot, and a hot pair tells the peer not to mark it.
TEST(ForkTest, AChildThatPollsDoesNotSilenceItsParentsPeer) {
  ChildProcess forking([](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    end.Await(end.connected);
    parent.GetValue<int>();  // the peer is connected, too
    end.Receive(1, 0, 64);
    end.Send(2, 0, 8);
    const pid_t child = fork();
    if (child == 0) {
      Completion completion;
      _exit(end.sends().Poll(&completion, 1) == 1 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
    parent.PutValue(1);
    const uint64_t id = end.Next(end.receives()).id;
    parent.PutValue(1);
    return id == 1 ? 0 : 2;
  });
  ChildProcess peer([&forking](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    end.Receive(1, 0, 64);
    DialForTest(end.pair(), forking.GetValue<uint16_t>());
    end.Await(end.connected);
    forking.PutValue(1);
    end.Next(end.receives());
    forking.GetValue<int>();
    end.Send(2, 0, 8);
    forking.GetValue<int>();  // waits: the end of this process would wake it, too
    return 0;
  });
  EXPECT_EQ(peer.Wait(), 0);
  EXPECT_EQ(forking.Wait(), 0);
}

// The fork hook must not read what another thread was changing just then.
TEST(ForkTest, AChildIsBornWhileListenersAndConnectionsComeAndGo) {
  ChildProcess parent_of_many([](ChildProcess& parent) {
    auto context = OpenForTest();
    std::deque<TestEnd> ends;
    TestListener listener(
        *context, [&]() -> QueuePair& { return ends.emplace_back(*context, 4096, 16).pair(); });
    parent.PutValue(listener.port());
    std::atomic<bool> stop{false};
    std::thread listening([&] {
      while (!stop.load()) {
        std::deque<TestListener> more;
        for (int i = 0; i < 20; i++) {
          more.emplace_back(*context, [&]() -> QueuePair& { std::abort(); });
        }
      }
    });
    int bad = 0;
    for (int i = 0; i < 400; i++) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      int status = 0;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) bad++;
    }
    stop.store(true);
    listening.join();
    parent.GetValue<int>();
    return bad == 0 ? 0 : 1;
  });
  ChildProcess peer([&parent_of_many](ChildProcess&) {
    auto context = OpenForTest();
    const auto port = parent_of_many.GetValue<uint16_t>();
    for (int i = 0; i < 300; i++) {
      TestEnd end(*context, 4096, 16);
      DialForTest(end.pair(), port);
      end.Await(end.connected);
    }
    parent_of_many.PutValue(1);
    return 0;
  });
  EXPECT_EQ(peer.Wait(), 0);
  EXPECT_EQ(parent_of_many.Wait(), 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
