// An error handler, or the log in its place, that does not keep up with what its peer does.
#include <sched.h>
#include <unistd.h>
#include <vipl.h>

#include <condition_variable>
#include <mutex>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr int kMessages = 6000;
constexpr int kKept = 4096;  // as VipErrorCallback's page says
constexpr int kLines = 64;

// The program's handler, which stays in its first call until LetGo.
class SlowHandler {
 public:
  static void Handle(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* const self = static_cast<SlowHandler*>(context);
    std::unique_lock<std::mutex> hold(self->mutex_);
    if (error->ErrorCode == VIP_ERROR_RECVQ_EMPTY) ++self->dropped_;
    if (error->ErrorCode == VIP_ERROR_CONN_LOST) self->lost_ = true;
    self->changed_.notify_all();
    self->changed_.wait(hold, [self] { return self->open_; });
  }
  void LetGo() {
    const std::lock_guard<std::mutex> hold(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // How many dropped messages were reported to it before the end of the connection.
  int DroppedUntilLost() {
    std::unique_lock<std::mutex> hold(mutex_);
    changed_.wait(hold, [this] { return lost_; });
    return dropped_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool lost_ = false;
  int dropped_ = 0;
};

TEST(SlowHandler, KeepsSoManyReportsAndNoMore) {
  RunPair(
      [](Peer&) {
        Side side(Attributes(VIP_SERVICE_UNRELIABLE));
        auto* const handler = new SlowHandler;  // a callback may come late
        ASSERT_EQ(VipErrorCallback(side.nic.handle, handler, &SlowHandler::Handle), VIP_SUCCESS);
        side.Accept();
        // The disconnect comes after the last message, whenever that is taken.
        while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        handler->LetGo();
        const int dropped = handler->DroppedUntilLost();
        EXPECT_GE(dropped, kKept);
        EXPECT_LE(dropped, kKept + 1) << "with the one that it stood in";
      },
      [](Peer&) {
        Side side(Attributes(VIP_SERVICE_UNRELIABLE));
        side.Connect();
        for (int i = 0; i < kMessages; ++i) {
          ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 8)), VIP_SUCCESS);
          EXPECT_EQ(side.NextSend()->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        }
        EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      });
}

// What the library writes to standard error, up to a line with `last`.
std::string LogUntil(int log, const char* last) {
  std::string text;
  char some[4096];
  for (ssize_t n = 1; n > 0 && text.find(last) == std::string::npos;) {
    n = read(log, some, sizeof some);
    if (n > 0) text.append(some, static_cast<size_t>(n));
  }
  return text;
}

int Count(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(NoHandler, TheLogTellsOfSoManyAndOfOtherErrors) {
  RunPair(
      [](Peer&) {
        Side side(Attributes(VIP_SERVICE_UNRELIABLE));
        int log[2];
        ASSERT_EQ(pipe(log), 0);
        ASSERT_EQ(dup2(log[1], STDERR_FILENO), STDERR_FILENO);
        side.Accept();
        while (side.State() == VIP_STATE_CONNECTED) sched_yield();
        ASSERT_EQ(VipPostSend(side.vi, side.memory.descriptor(0), 0), VIP_SUCCESS);
        const std::string text = LogUntil(log[0], "VIP_ERROR_POST_DESC");
        EXPECT_EQ(Count(text, "VIP_ERROR_RECVQ_EMPTY"), kLines) << text;
        EXPECT_EQ(Count(text, "VipErrorCallback(3)"), 1) << text;
        EXPECT_EQ(Count(text, "VIP_ERROR_CONN_LOST"), 1) << text;
      },
      [](Peer&) {
        Side side(Attributes(VIP_SERVICE_UNRELIABLE));
        side.Connect();
        for (int i = 0; i < 2 * kLines; ++i) {
          ASSERT_EQ(side.PostSend(side.memory.Fill(0, 0, 8)), VIP_SUCCESS);
          EXPECT_EQ(side.NextSend()->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
        }
        EXPECT_EQ(VipDisconnect(side.vi), VIP_SUCCESS);
      });
}

}  // namespace
}  // namespace viaduct::tests
