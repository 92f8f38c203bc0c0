// A process that is forbidden to bind, as in some containers and systemd units.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr int kNoFilter = 2;

// A filter is for ever, so a child connects. Only the child has an engine, the test process none.
TEST(IwarpBindFilterTest, ItConnectsFromWhereTheKernelWants) {
  for (const int error : {EPERM, EACCES}) {
    SCOPED_TRACE(error);
    TestListener listener;
    const pid_t process = fork();
    if (process == 0) {
      if (!ForbidCalls({SYS_bind}, error)) _exit(kNoFilter);
      TestEnd end;
      end.Dial(listener.port());
      _exit(end.sink.Next().kind == Event::Kind::kConnected ? 0 : 1);
    }
    TestPeer peer = listener.Accept();
    if (peer.ReceiveHex(24).size() == 2u * 24) {
      peer.SendHex(std::string(kReply) + "50020004 80048004");
      EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
    }
    int status = -1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "no filters of system calls";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
