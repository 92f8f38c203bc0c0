// For tests: a forked child.
#ifndef VIADUCT_VERBS_BASE_TESTING_CHILD_H_
#define VIADUCT_VERBS_BASE_TESTING_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "gtest/gtest.h"

namespace viaduct::verbs {

// Runs `body` in a forked child and returns its exit code, or -1 if it did not end by itself within
// a minute.
inline int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_TESTING_CHILD_H_
