#include "tests/faults/forking.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"

namespace viaduct::tests {

pid_t StartChild(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child != 0) return child;
  body();
  exit(::testing::Test::HasFailure() ? 1 : 0);
}

int EndOf(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

void ExchangeAndFork(Peer& peer, const std::function<void()>& exchange,
                     const std::function<void()>& in_child, const std::function<void()>& look) {
  exchange();
  EXPECT_EQ(EndOf(StartChild(in_child)), 0);
  peer.Tell("the child has ended");
  exchange();
  look();
  peer.Tell("fine here too");
  peer.Await("fine");
}

void ExchangeWithForking(Peer& peer, const std::function<void()>& exchange,
                         const std::function<void()>& look,
                         const std::function<void()>& with_child) {
  exchange();
  with_child();
  peer.Await("the child has ended");
  exchange();
  look();
  peer.Tell("fine");
  peer.Await("fine here too");
}

}  // namespace viaduct::tests
