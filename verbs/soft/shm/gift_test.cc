// Descriptors that others send to a listening name, and that take long to close, hold up no thread
// of ours.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/fd.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_hang_up.h"
#include "verbs/soft/testing_slow_close.h"

namespace viaduct::verbs::shm {
namespace {

class GiftTest : public testing::Test {
 protected:
  // Another process of this user greets the listener with something that is slow to close.
  void Greet(const std::string& greeting) {
    ChildProcess stranger([&greeting](ChildProcess& parent) {
      const auto port = parent.GetValue<uint16_t>();
      pid_t pid;
      const auto socket = DialTo("viaduct", port, &pid);
      SlowToClose slow;
      const bool sent = socket.ok() && SendWith(socket->get(), greeting, slow.Take().get());
      parent.PutValue(sent);
      if (!socket.ok()) return 1;
      parent.PutValue(HearsTheEnd(socket->get()));
      return parent.GetValue<int>();
    });
    const auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    EventLoop& loop = **ControlThread::Get();
    OccupiedLoop occupied(loop);
    stranger.PutValue(listener.port());
    const bool sent = stranger.GetValue<bool>();
    occupied.LetGo();
    ASSERT_TRUE(sent);
    EXPECT_TRUE(stranger.GetValue<bool>()) << "the stranger is not refused";
    EXPECT_TRUE(Answers(loop));
    stranger.PutValue(0);
    EXPECT_EQ(stranger.Wait(), 0);
  }
};

TEST_F(GiftTest, NoMemoryIsWhatItShouldBe) {
  Greet(BuildMessage(MessageType::kHello, 0, HelloBody{1, 0, 0}));
}

TEST_F(GiftTest, NoneIsDue) { Greet(BuildMessage(MessageType::kRing, 0, {}, {})); }

TEST_F(GiftTest, ItComesWithNonsense) { Greet("nonsense"); }

// Another user is refused before anything is read.
TEST_F(GiftTest, ItIsAnotherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string user = std::to_string(geteuid());
  ChildProcess stranger([&user](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    const bool changed = setresuid(12345, 12345, 12345) == 0;
    parent.PutValue(changed);
    if (!changed) return 0;
    SlowToClose slow;
    const Fd channel(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const std::string name = "viaduct-" + user + "-" + std::to_string(port);
    sockaddr_un to = {};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const bool sent = connect(channel.get(), reinterpret_cast<sockaddr*>(&to), length) == 0 &&
                      SendWith(channel.get(), "unread", slow.Take().get());
    parent.PutValue(sent);
    parent.PutValue(HearsTheEnd(channel.get()));
    return parent.GetValue<int>();
  });
  const auto context = OpenForTest();
  TestEnd end(*context);
  TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
  EventLoop& loop = **ControlThread::Get();
  OccupiedLoop occupied(loop);
  stranger.PutValue(listener.port());
  const bool other = stranger.GetValue<bool>();
  if (other) {
    EXPECT_TRUE(stranger.GetValue<bool>()) << "the stranger cannot reach the name";
  }
  occupied.LetGo();
  if (!other) GTEST_SKIP() << "no other user in this namespace";
  EXPECT_TRUE(stranger.GetValue<bool>()) << "the stranger is not refused";
  EXPECT_TRUE(Answers(loop));
  stranger.PutValue(0);
  EXPECT_EQ(stranger.Wait(), 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
