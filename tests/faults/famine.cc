#include "tests/faults/famine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace viaduct::tests {
namespace {

// Above what the library prefers for its own, so that those numbers run out too.
constexpr rlim_t kLimit = 1200;

}  // namespace

DescriptorFamine::DescriptorFamine() {
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
  rlimit limit = before_;
  limit.rlim_cur = kLimit;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  int fd;
  while ((fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0) eaten_.push_back(fd);
  EXPECT_EQ(errno, EMFILE);
}

DescriptorFamine::~DescriptorFamine() {
  for (int fd : eaten_) close(fd);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0);
}

SmallFiles::SmallFiles() {
  EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
  rlimit limit = before_;
  limit.rlim_cur = 1 << 20;
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

SmallFiles::~SmallFiles() { EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }

PageFamine::PageFamine() {
  EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
  rlimit limit = before_;
  limit.rlim_cur = 1 << 20;
  EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

PageFamine::~PageFamine() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0); }

}  // namespace viaduct::tests
