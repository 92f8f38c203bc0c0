// An error handler that does not keep up with what its peer does.
#include <sched.h>
#include <vipl.h>

#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"

namespace viaduct::tests {
namespace {

constexpr int kMessages = 6000;
constexpr int kKept = 4096;  // as VipErrorCallback's page says

// Of the program: it stands in its first call until it is let go.
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
  // How many messages it was told of before the end of the connection.
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
        // Behind the last message, whenever that is taken.
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

}  // namespace
}  // namespace viaduct::tests
