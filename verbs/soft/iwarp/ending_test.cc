#include "verbs/soft/iwarp/ending.h"

#include <dirent.h>
#include <sys/resource.h>

#include <deque>
#include <string>
#include <vector>

#include "gtest/gtest.h"
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

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// A server that takes one peer after the other, and each breaks a rule and stays.
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
  // Of the last one the end may be still to come.
  EXPECT_LE(OpenDescriptors() - before - peers.size(), kMostEndings + 1);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
