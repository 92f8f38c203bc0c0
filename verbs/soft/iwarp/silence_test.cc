// A network that goes away, in a network namespace of the test's own.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/testing_network.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr Nanos kSilence = 2'000'000'000;

class IwarpSilenceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { own_network_ = EnterOwnNetwork(); }

  void SetUp() override {
    if (!own_network_) GTEST_SKIP() << "no network namespace of its own";
    ASSERT_TRUE(SetLoopback(true));
    // So that TCP itself does not give up before a test does.
    ASSERT_TRUE(SetNetwork("ipv4/tcp_retries2", "255"));
    Connect(kSilence);
  }

  void Connect(Nanos silence) {
    const TestEnd::Options options{.silence = silence};
    a_ = std::make_unique<TestEnd>(options);
    b_ = std::make_unique<TestEnd>(options);
    ConnectEnds(*a_, *b_);
  }

  static bool own_network_;
  std::unique_ptr<TestEnd> a_;
  std::unique_ptr<TestEnd> b_;
};

bool IwarpSilenceTest::own_network_ = false;

// iWARP checklist 56, busy: an acknowledgement is owed.
TEST_F(IwarpSilenceTest, RequestsUnderWay) {
  ASSERT_TRUE(SetLoopback(false));
  a_->Send(1, 0, 100, kConfirm);
  EXPECT_EQ(a_->NextSend().status, Status::kTransport);
  const Event event = a_->sink.Next();
  EXPECT_EQ(event.kind, Event::Kind::kDisconnected);
  EXPECT_EQ(event.cause, DisconnectCause::kBroken);
}

// The reply is under way to a peer that need not speak first.
TEST_F(IwarpSilenceTest, AnswerUnderWay) {
  TestEnd end({.silence = kSilence});
  end.Listen();
  TestPeer peer = TestPeer::Dial(end.listener->port());
  peer.SendHex(std::string(kRequest) + "40010000");
  const std::unique_ptr<IncomingConnection> request = end.requests.Next();
  ASSERT_TRUE(SetLoopback(false));
  ASSERT_TRUE(request->Accept(*end.pair, {}).ok());
  EXPECT_EQ(end.sink.Next().kind, Event::Kind::kConnected);
  EXPECT_EQ(end.sink.Next().cause, DisconnectCause::kBroken);
}

// A peer may take its time to answer, for as long as it is there.
TEST_F(IwarpSilenceTest, BeforeTheAnswer) {
  TestListener listener;
  TestEnd end({.silence = kSilence});
  end.Dial(listener.port());
  TestPeer peer = listener.Accept();
  EXPECT_EQ(peer.ReceiveHex(24).size(), 2u * 24);
  const Deadline deadline = Deadline::After(end.loop, 10 * kNanosPerSecond);
  const auto acknowledged = [] {
    int64_t left = 0;
    return Socket::TryForEach([&left](int fd) { left += UnacknowledgedBytes(fd); }) && left == 0;
  };
  while (!acknowledged() && !deadline.Passed(end.loop)) poll(nullptr, 0, 1);
  ASSERT_TRUE(SetLoopback(false));
  const Event event = end.sink.Next();
  EXPECT_EQ(event.kind, Event::Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kUnreachable);
}

// Checklist 56, idle: keep-alive finds out.
TEST_F(IwarpSilenceTest, NothingUnderWay) {
  ASSERT_TRUE(SetLoopback(false));
  EXPECT_EQ(a_->sink.Next().cause, DisconnectCause::kBroken);
  EXPECT_EQ(b_->sink.Next().cause, DisconnectCause::kBroken);
}

// An outage of less than half the time limit does no harm to an idle connection, whichever of its
// keep-alive probes are lost.
TEST_F(IwarpSilenceTest, ShortSilenceWithNothingUnderWay) {
  Connect(9 * kNanosPerSecond);
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i == 0 ? 2800 : 1300));
    ASSERT_TRUE(SetLoopback(false));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    ASSERT_TRUE(SetLoopback(true));
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_TRUE(a_->sink.Empty());
  EXPECT_TRUE(b_->sink.Empty());
  b_->Receive(2, 0, 100);
  a_->Send(1, 0, 100, kConfirm);
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->NextReceive().status, Status::kSuccess);
}

// After a long outage TCP retransmits soon enough, although it has done so in vain for long.
TEST_F(IwarpSilenceTest, LongSilence) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!LimitBackOff(socket.get(), kSilence)) GTEST_SKIP() << "no TCP_RTO_MAX_MS: Linux 6.15";
  Connect(12 * kNanosPerSecond);
  ASSERT_TRUE(SetLoopback(false));
  b_->Receive(2, 0, 100);
  a_->Send(1, 0, 100, kConfirm);
  std::this_thread::sleep_for(std::chrono::milliseconds(6600));
  ASSERT_TRUE(SetLoopback(true));
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->NextReceive().status, Status::kSuccess);
}

// A network that comes back in time has done no harm.
TEST_F(IwarpSilenceTest, ShortSilence) {
  ASSERT_TRUE(SetLoopback(false));
  b_->Receive(2, 0, 100);
  a_->Send(1, 0, 100, kConfirm);
  ASSERT_TRUE(SetLoopback(true));
  EXPECT_EQ(a_->NextSend().status, Status::kSuccess);
  EXPECT_EQ(b_->NextReceive().status, Status::kSuccess);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
