#include "verbs/base/event_fd.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

bool IsReadable(const EventFd& fd) {
  pollfd poll_fd = {fd.get(), POLLIN, 0};
  return poll(&poll_fd, 1, 0) == 1;
}

TEST(EventFd, IsReadableWhileItIsSet) {
  EventFd fd = EventFd::Open();
  ASSERT_TRUE(fd.valid());
  EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(IsReadable(fd));
  fd.Set();
  fd.Set();
  EXPECT_TRUE(IsReadable(fd));
  EXPECT_TRUE(IsReadable(fd));
  fd.Clear();
  EXPECT_FALSE(IsReadable(fd)) << "once, however often it was set";
  errno = 7;
  fd.Clear();
  EXPECT_EQ(errno, 7);
}

}  // namespace
}  // namespace viaduct::verbs
