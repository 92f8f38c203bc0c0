// Sockets that wait for their peer's FIN after a reject.
#include "verbs/soft/iwarp/linger.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {
namespace {

// One end of a connection, after its other end was given to CloseBehindPeer with that limit.
Fd PeerOfClosing(size_t most) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return Fd();
  CloseBehindPeer(**ControlThread::Get(), Socket(Fd(ends[0])), 60 * kNanosPerSecond, most);
  return Fd(ends[1]);
}

// A socket that is to wait is closed only later, and not by a thread that runs already.
bool IsClosed(const Fd& peer) {
  char byte;
  return recv(peer.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(LingerTest, AChildHasNoneOfItsParents) {
  const Fd first = PeerOfClosing(1);
  EXPECT_FALSE(IsClosed(first));
  EXPECT_TRUE(IsClosed(PeerOfClosing(1))) << "one more than may wait";
  const pid_t child = fork();
  if (child == 0) {
    const Fd own = PeerOfClosing(1);
    _exit(own.valid() && !IsClosed(own) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
