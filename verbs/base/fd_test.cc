#include "verbs/base/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

Fd OpenSomething() { return Fd(open("/dev/null", O_RDONLY)); }

TEST(Fd, ClosesWhatItOwns) {
  int number;
  {
    Fd fd = OpenSomething();
    ASSERT_TRUE(fd.valid());
    number = fd.get();
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(Fd, MovingHandsOver) {
  Fd from = OpenSomething();
  const int number = from.get();
  Fd to = std::move(from);
  EXPECT_FALSE(from.valid());
  EXPECT_EQ(to.get(), number);
  Fd other = OpenSomething();
  const int closed = other.get();
  other = std::move(to);
  EXPECT_FALSE(IsOpen(closed));
  EXPECT_TRUE(IsOpen(number));
  EXPECT_EQ(other.Release(), number);
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

TEST(Fd, MoveHighLeavesTheRoomOfSelect) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  Fd low = OpenSomething();
  const int number = low.get();
  Fd high = MoveHigh(std::move(low));
  EXPECT_NE(fcntl(high.get(), F_GETFD) & FD_CLOEXEC, 0);
  if (limit.rlim_cur > kHighFd) {
    EXPECT_GE(high.get(), kHighFd);
    EXPECT_FALSE(IsOpen(number));
  }
}

TEST(Fd, MoveHighStaysWhereTheLimitIsLow) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low_limit = limit;
  low_limit.rlim_cur = 512;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low_limit), 0);
  Fd low = OpenSomething();
  const int number = low.get();
  Fd same = MoveHigh(std::move(low));
  EXPECT_EQ(same.get(), number);
  EXPECT_NE(fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Daemons close the standard streams, and go on writing to them.
TEST(Fd, MoveHighTakesNoStandardStreamWhereTheLimitIsLow) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const Fd input(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  rlimit low_limit = limit;
  low_limit.rlim_cur = 512;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low_limit), 0);
  close(STDIN_FILENO);
  Fd low = OpenSomething();
  EXPECT_EQ(low.get(), STDIN_FILENO);
  const Fd moved = MoveHigh(std::move(low));
  EXPECT_GT(moved.get(), STDERR_FILENO);
  EXPECT_NE(fcntl(moved.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(IsOpen(STDIN_FILENO));
  setrlimit(RLIMIT_NOFILE, &limit);
  if (input.valid()) dup2(input.get(), STDIN_FILENO);
}

TEST(Fd, NothingMovesNowhere) { EXPECT_FALSE(MoveHigh(Fd()).valid()); }

}  // namespace
}  // namespace viaduct::verbs
