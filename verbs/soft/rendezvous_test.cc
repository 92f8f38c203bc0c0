#include "verbs/soft/rendezvous.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"

namespace viaduct::verbs {
namespace {

TEST(Rendezvous, MayBe) { EXPECT_TRUE(MayRendezvous()); }

// Filters of system calls may refuse the socket, and security modules the name.
TEST(Rendezvous, MayNotBe) {
  for (const long call : {SYS_socket, SYS_bind}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!ForbidCalls({call}, EACCES)) _exit(2);
      _exit(MayRendezvous() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << call;
  }
}

}  // namespace
}  // namespace viaduct::verbs
