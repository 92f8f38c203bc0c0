#include "tests/faults/famine.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace viaduct::tests {
namespace {

// Above the numbers that the library prefers for its descriptors, so that those run out too.
constexpr rlim_t kLimit = 1200;

}  // namespace

LoweredLimit::LoweredLimit(Resource resource, rlim_t limit) : resource_(resource) {
  EXPECT_EQ(getrlimit(resource, &before_), 0);
  rlimit lowered = before_;
  lowered.rlim_cur = limit;
  EXPECT_EQ(setrlimit(resource, &lowered), 0);
}

LoweredLimit::~LoweredLimit() { EXPECT_EQ(setrlimit(resource_, &before_), 0); }

DescriptorFamine::DescriptorFamine() : limit_(RLIMIT_NOFILE, kLimit) {
  int fd;
  while ((fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0) eaten_.push_back(fd);
  EXPECT_EQ(errno, EMFILE);
}

DescriptorFamine::~DescriptorFamine() {
  for (int fd : eaten_) close(fd);
}

}  // namespace viaduct::tests
