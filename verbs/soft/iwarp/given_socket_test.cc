// A process of this user hands over a connection and keeps a copy of its socket.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/testing_slow_close.h"

namespace viaduct::verbs::iwarp {
namespace {

class OpenDoorSink final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    queue.OnRequest(std::move(request));
  }
  bool TakesHandOff(absl::Span<const uint8_t>) override { return true; }
  TestListenerSink queue;
};

class GivenSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening = end_.context->Listen(0, &sink_);
    ASSERT_TRUE(listening.ok()) << listening.status();
    end_.listener = *std::move(listening);
  }
  void TearDown() override { end_.listener.reset(); }

  // Hands the socket over. Returns the request that the listener makes of it.
  std::unique_ptr<IncomingConnection> Give(int socket) {
    pid_t pid;
    const auto channel = DialTo("viaduct-iwarp", end_.listener->port(), &pid);
    EXPECT_TRUE(channel.ok()) << channel.status();
    if (!channel.ok()) return nullptr;
    EXPECT_EQ(send(channel->get(), "VUH1y", 5, 0), 5);
    EXPECT_TRUE(AwaitInput(channel->get(), Deadline::After(end_.loop, 10'000'000'000)));
    char answer = 0;
    EXPECT_EQ(recv(channel->get(), &answer, 1, 0), 1);
    EXPECT_EQ(answer, 1);
    const std::vector<uint8_t> frame = FromHex(std::string(kRequest) + "50020004 80108010");
    EXPECT_TRUE(SendWith(channel->get(), std::string(frame.begin(), frame.end()), socket));
    return sink_.queue.Next();
  }

  OpenDoorSink sink_;
  TestEnd end_;
};

TEST_F(GivenSocketTest, ItDoesNotBlock) {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener.get(), any, length), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), any, &length), 0);
  Fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(peer.get(), any, length), 0);
  const Fd given(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));

  const std::unique_ptr<IncomingConnection> request = Give(given.get());
  ASSERT_NE(request, nullptr);
  int kept_alive = 0;
  length = sizeof kept_alive;
  ASSERT_EQ(getsockopt(given.get(), SOL_SOCKET, SO_KEEPALIVE, &kept_alive, &length), 0);
  EXPECT_EQ(kept_alive, 1);
  ASSERT_EQ(fcntl(given.get(), F_SETFL, 0), 0);  // a flag of the open file, so ours has it too
  ASSERT_TRUE(request->Accept(*end_.pair, {}).ok());
  EXPECT_TRUE(Answers(end_.loop)) << "it waits for the peer";
  const std::vector<uint8_t> first = FromHex(kWriteRtr);
  ASSERT_EQ(send(peer.get(), first.data(), first.size(), 0), static_cast<ssize_t>(first.size()));
  EXPECT_EQ(end_.sink.Next().kind, Event::Kind::kConnected);
  end_.pair->Disconnect(DisconnectMode::kGraceful);
  EXPECT_EQ(end_.sink.Next().kind, Event::Kind::kDisconnected);
  EXPECT_TRUE(Answers(end_.loop)) << "it waits for the peer's end";
  peer.Reset();
}

TEST_F(GivenSocketTest, ItsCloseDoesNotWait) {
  SlowToClose slow;
  Fd copy = slow.Take();
  const std::unique_ptr<IncomingConnection> request = Give(copy.get());
  ASSERT_NE(request, nullptr);
  linger setting = {1, 1};
  socklen_t length = sizeof setting;
  ASSERT_EQ(getsockopt(copy.get(), SOL_SOCKET, SO_LINGER, &setting, &length), 0);
  EXPECT_EQ(setting.l_onoff, 0);
  // Whoever has a copy of the socket can change that.
  setting = {1, 30};
  ASSERT_EQ(setsockopt(copy.get(), SOL_SOCKET, SO_LINGER, &setting, sizeof setting), 0);
  copy.Reset();
  std::packaged_task<void()> refuse([&request] { request->Refuse(); });
  std::future<void> refused = refuse.get_future();
  std::thread program(std::move(refuse));
  EXPECT_EQ(refused.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  slow.LetGo();
  program.join();
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
