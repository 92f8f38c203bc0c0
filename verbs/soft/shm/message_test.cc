// What comes over the unix socket, and what is refused there.
#include "verbs/soft/shm/message.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs::shm {
namespace {

class MessageTest : public testing::Test {
 protected:
  MessageTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    near_ = Fd(fds[0]);
    far_ = Fd(fds[1]);
    EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
  }
  // Sends `bytes` and the pipe's writing end, of which no other copy is left then.
  void SendWithPipe(const std::string& bytes) {
    ASSERT_EQ(SendMessage(far_.get(), bytes, {&pipe_[1], 1}), SocketResult::kDone);
    close(pipe_[1]);
  }
  // Whether nobody has the writing end any more, now or soon.
  bool PipeHasEnded() {
    const Fd reader(pipe_[0]);
    pollfd entry = {reader.get(), POLLIN, 0};
    return poll(&entry, 1, 10'000) == 1 && (entry.revents & POLLHUP) != 0;
  }

  Fd near_;
  Fd far_;
  int pipe_[2] = {-1, -1};
};

TEST_F(MessageTest, BringsItsDescriptors) {
  SendWithPipe(BuildMessage(MessageType::kHello, 7, HelloBody()));
  {
    Message message;
    ASSERT_EQ(ReceiveMessage(near_.get(), &message), SocketResult::kDone);
    EXPECT_EQ(message.connection, 7u);
    ASSERT_EQ(message.fds.size(), 1u);
    EXPECT_TRUE(message.fds[0].valid());
  }
  EXPECT_TRUE(PipeHasEnded());
}

TEST_F(MessageTest, NonsenseLeavesNoDescriptors) {
  SendWithPipe("nonsense");
  {
    Message message;
    EXPECT_EQ(ReceiveMessage(near_.get(), &message), SocketResult::kGone);
  }
  EXPECT_TRUE(PipeHasEnded());
}

TEST_F(MessageTest, NothingAtAllLeavesNoDescriptors) {
  SendWithPipe("");
  {
    Message message;
    EXPECT_EQ(ReceiveMessage(near_.get(), &message), SocketResult::kGone);
  }
  EXPECT_TRUE(PipeHasEnded());
}

}  // namespace
}  // namespace viaduct::verbs::shm
