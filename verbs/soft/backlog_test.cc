// Listeners with a full backlog, in a network namespace of the test's own.
#include <sched.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/device.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/open.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_network.h"

namespace viaduct::verbs {
namespace {

constexpr uint16_t kPort = 2000;

class BacklogTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    own_network_ = EnterOwnNetwork() && SetNetwork("core/somaxconn", "1");
  }
  void SetUp() override {
    if (!own_network_) GTEST_SKIP() << "no network namespace of its own";
  }

  // Listens at this name without accepting, and dials until the backlog has no more room.
  void Fill(absl::string_view service, uint16_t port) {
    auto listening = ListenAt(service, port);
    ASSERT_TRUE(listening.ok()) << listening.status();
    listening_ = *std::move(listening);
    absl::Status last;
    for (int i = 0; i < 16 && last.ok(); ++i) {
      pid_t pid;
      absl::StatusOr<ChannelFd> waiting = DialTo(service, port, &pid);
      last = waiting.status();
      if (waiting.ok()) waiting_.push_back(*std::move(waiting));
    }
    EXPECT_TRUE(absl::IsUnavailable(last)) << last;
  }
  static std::unique_ptr<Context> Open(const std::string& wire) {
    return *OpenSoftDevice(*Address::Parse("127.0.0.1"), wire);
  }

  static inline bool own_network_ = false;
  ListeningFd listening_;
  std::vector<ChannelFd> waiting_;
};

TEST_F(BacklogTest, APortWithoutRoomIsServed) {
  const std::unique_ptr<Context> shm = Open("shm"), iwarp = Open("iwarp");
  EXPECT_FALSE(shm->IsServed(kPort));
  Fill("viaduct", kPort);
  EXPECT_TRUE(shm->IsServed(kPort));
  EXPECT_FALSE(iwarp->IsServed(kPort));
  Fill("viaduct-iwarp", kPort);
  EXPECT_TRUE(iwarp->IsServed(kPort));
}

// Whoever it is that does not accept, it may be another user.
TEST_F(BacklogTest, WhoHasNoRoomIsNotWaitedFor) {
  const uint8_t note[] = {1};
  for (const char* wire : {"shm", "iwarp"}) {
    SCOPED_TRACE(wire);
    const std::unique_ptr<Context> context = Open(wire);
    Fill(wire == std::string("shm") ? "viaduct" : "viaduct-iwarp", kPort);
    EXPECT_EQ(context->WouldTake(kPort, note, Deadline::At(0)), TakeAnswer::kNo);
  }
}

// Nobody listens over TCP, but that does not decide the outcome.
TEST_F(BacklogTest, WhereNobodyElseListensItIsARefusal) {
  Fill("viaduct", kPort);
  for (const char* wire : {"shm", "auto"}) {
    SCOPED_TRACE(wire);
    const std::unique_ptr<Context> context = Open(wire);
    shm::TestEnd end(*context);
    for (int i = 1; i <= 2; ++i) {
      shm::DialForTest(end.pair(), kPort);
      end.Await(end.failed, i);
      EXPECT_EQ(end.outcome, ConnectOutcome::kRefused);
    }
    shm::DialForTest(end.pair(), kPort + 1);
    end.Await(end.failed, 3);
    EXPECT_EQ(end.outcome, ConnectOutcome::kNobody);
  }
}

TEST_F(BacklogTest, TheNextWireMayHaveRoom) {
  const std::unique_ptr<Context> serving = Open("iwarp"), dialling = Open("auto");
  shm::TestEnd from(*dialling), to(*serving);
  shm::TestListener listener(*serving, [&]() -> QueuePair& { return to.pair(); });
  Fill("viaduct", listener.port());
  shm::DialForTest(from.pair(), listener.port());
  while (from.connected + from.failed == 0) sched_yield();
  EXPECT_EQ(from.connected, 1);
}

}  // namespace
}  // namespace viaduct::verbs
