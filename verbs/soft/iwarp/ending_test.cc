#include "verbs/soft/iwarp/ending.h"

#include <sys/resource.h>

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/mpa_format.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"

namespace viaduct::verbs::iwarp {
namespace {

class TestEnding final : public Ending {
 public:
  explicit TestEnding(std::vector<int>* gone, int number) : gone_(gone), number_(number) {}
  ~TestEnding() { Leave(); }
  using Ending::Enter;
  using Ending::Leave;

 private:
  void GiveWay() override {
    Leave();
    gone_->push_back(number_);
  }
  std::vector<int>* const gone_;
  const int number_;
};

TEST(EndingTest, TheOldestThatIsLeftGivesWay) {
  std::vector<int> gone;
  std::deque<TestEnding> all;
  const int most = static_cast<int>(kMostEndings);
  for (int i = 0; i < most; ++i) all.emplace_back(&gone, i).Enter();
  EXPECT_TRUE(gone.empty());
  all[0].Leave();
  all[2].Leave();
  all[2].Leave();
  all[most - 1].Leave();
  for (int i = 0; i < 5; ++i) all.emplace_back(&gone, most + i).Enter();
  EXPECT_EQ(gone, (std::vector<int>{1, 3}));
}

// A server accepts one peer after the other. Each breaks a rule and does not close.
TEST(EndingTest, WhoBreaksARuleAndStaysHoldsNoDescriptor) {
  constexpr size_t kPeers = kMostEndings + 100;
  rlimit files;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 4 * kPeers) GTEST_SKIP() << "too few descriptors: " << files.rlim_cur;
  TestEnd::Options options;
  options.silence = 600'000'000'000;  // none is closed for having waited
  TestEnd end(options);
  end.Listen();
  std::vector<TestPeer> peers;
  const size_t before = OpenDescriptors();
  for (size_t i = 0; i < kPeers; ++i) {
    peers.push_back(TestPeer::Dial(end.listener->port()));
    peers.back().SendHex(std::string(kRequest) + "50020004 80108010");
    end.AcceptNext();
    peers.back().ReceiveHex(24);
    peers.back().SendHex(kWriteRtr);
    ASSERT_EQ(end.sink.Next().kind, Event::Kind::kConnected);
    peers.back().SendHex("0000");
    ASSERT_EQ(end.sink.Next().kind, Event::Kind::kDisconnected);
    end.pair->Reset();
  }
  // The end of the last connection may be still to come.
  EXPECT_LE(OpenDescriptors() - before - peers.size(), kMostEndings + 1);
}

// A socket stays open for as long as the peer takes something. If it were closed, it would answer
// the peer's next bytes with a reset, and data under way would be lost.
class SlowPeer : public LinkTest {
 protected:
  static constexpr uint32_t kMessage = 64 * 1024;
  static constexpr size_t kLittle = 4 * 1024;

  // A peer with little room in its receive buffer, and `messages` sends toward it.
  TestPeer Begin(size_t messages, Nanos silence = kNanosPerSecond) {
    options_.silence = silence;
    TestPeer peer = Accepted(options_);
    peer.KeepLittle();
    for (uint64_t i = 0; i < messages; ++i) end_->Send(i, 0, kMessage);
    return peer;
  }

  // Sends until acknowledgements give TCP no more room. Returns how many sends are complete.
  size_t FillUp() {
    size_t complete = 0;
    for (uint64_t i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      end_->Send(1000 + i, 0, 8);
      Completion completion;
      while (end_->send_queue->Poll(&completion, 1) == 1) ++complete;
    }
    return complete;
  }

  // The peer takes data slowly, and sends something before it takes the rest. Returns how many
  // bytes it got.
  size_t TakeSlowly(TestPeer& peer) {
    size_t taken = 0;
    const Deadline silence = Deadline::After(end_->loop, 5 * options_.silence / 2);
    while (!silence.Passed(end_->loop)) {
      taken += peer.Discard(kLittle);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    peer.SendHex("0000");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const TestPeer::End end = peer.ReceiveEnd();
    EXPECT_FALSE(end.reset);
    EXPECT_GT(end.hex.size() / 2, size_t{kMessage}) << "all had been taken before";
    return taken + end.hex.size() / 2;
  }

  TestEnd::Options options_;
};

// TCP has taken all messages.
TEST_F(SlowPeer, GetsAllThatIsComplete) {
  constexpr size_t kMessages = 16;
  TestPeer peer = Begin(kMessages);
  end_->pair->Disconnect(DisconnectMode::kGraceful);
  size_t taken = 0;
  while (end_->sink.Empty()) {  // there is more than TCP takes
    taken += peer.Discard(kLittle);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kLocal);
  for (uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
  EXPECT_GE(taken + TakeSlowly(peer), kMessages * kMessage);
}

// TCP has no room for the end of the last message that has begun.
TEST_F(SlowPeer, GetsAllThatIsCompleteBeforeWhatBreaksOff) {
  constexpr size_t kMessages = 256;
  TestPeer peer = Begin(kMessages);
  const size_t complete = FillUp();
  ASSERT_GT(complete, 0u);
  end_->pair->Disconnect(DisconnectMode::kAbrupt);
  EXPECT_EQ(end_->NextSend().status, Status::kFlushed);
  EXPECT_GT(TakeSlowly(peer), complete * kMessage);
}

// An FPDU that has begun to go out is completed, whatever the peer sends meanwhile.
TEST_F(SlowPeer, GetsNoFpduThatIsCut) {
  TestPeer peer = Begin(256, 30 * kNanosPerSecond);
  FillUp();
  end_->pair->Disconnect(DisconnectMode::kAbrupt);
  end_->loop.Drain();
  peer.SendHex(kWriteRtr);
  peer.AwaitTaken();
  end_->loop.Drain();
  size_t whole = 0;
  for (std::string fpdu = peer.ReceiveFpduHex(); !fpdu.empty(); fpdu = peer.ReceiveFpduHex()) {
    ASSERT_GE(fpdu.size(), 2 * kFpduLengthSize);
    const std::vector<uint8_t> length = FromHex(fpdu.substr(0, 2 * kFpduLengthSize));
    ASSERT_EQ(fpdu.size() / 2, FpduSize(static_cast<size_t>(length[0]) << 8 | length[1]));
    ++whole;
  }
  EXPECT_GT(whole, 0u);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
