#include "tests/faults/forking.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"

namespace viaduct::tests {

void ExchangeAndFork(Peer& peer, const std::function<void()>& exchange,
                     const std::function<void()>& in_child, const std::function<void()>& look) {
  exchange();
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    in_child();
    exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  peer.Tell("the child has ended");
  exchange();
  look();
  peer.Tell("fine here too");
  peer.Await("fine");
}

void ExchangeWithForking(Peer& peer, const std::function<void()>& exchange,
                         const std::function<void()>& look) {
  exchange();
  peer.Await("the child has ended");
  exchange();
  look();
  peer.Tell("fine");
  peer.Await("fine here too");
}

}  // namespace viaduct::tests
