// The counters themselves: a proof by a counter that never counts proves nothing.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tests/conformance/harness/process_facts.h"
#include "tests/hotpath/allocations.h"
#include "tests/hotpath/system_calls.h"

namespace viaduct::hotpath {
namespace {

TEST(SystemCallCounter, CountsTheCallsOfThisThreadAndMakesThem) {
  SystemCallCounter counter;
  if (!counter.supported()) GTEST_SKIP() << "no syscall user dispatch in this kernel";
  counter.Start();
  const long parent = syscall(SYS_getppid);
  char byte = 0;
  const ssize_t written = write(-1, &byte, 1);
  EXPECT_EQ(counter.Stop(), 2) << SystemCallCounter::Calls();
  EXPECT_EQ(parent, getppid());
  EXPECT_EQ(written, -1);
  EXPECT_EQ(SystemCallCounter::Calls(),
            "system calls: " + std::to_string(SYS_getppid) + " " + std::to_string(SYS_write));
}

TEST(SystemCallCounter, CountsNothingWhereNothingIsCalled) {
  SystemCallCounter counter;
  if (!counter.supported()) GTEST_SKIP() << "no syscall user dispatch in this kernel";
  counter.Start();
  (void)tests::SecondsOf(CLOCK_MONOTONIC);  // the vDSO
  EXPECT_EQ(counter.Stop(), 0) << SystemCallCounter::Calls();
}

TEST(Allocations, AreCountedWhoeverMakesThem) {
  if (!CountsAllocations()) GTEST_SKIP() << "the sanitizer's malloc is in place";
  StartCountingAllocations();
  char* copy = strdup("a call inside libc");
  free(copy);
  EXPECT_EQ(StopCountingAllocations(), 2);
  StartCountingAllocations();
  std::make_unique<std::string>(100, 'x').reset();
  EXPECT_EQ(StopCountingAllocations(), 4);
}

TEST(Allocations, OfOtherThreadsAreNotCounted) {
  if (!CountsAllocations()) GTEST_SKIP() << "the sanitizer's malloc is in place";
  std::atomic<bool> go{false}, done{false};
  std::thread other([&] {
    while (!go.load()) {
    }
    free(strdup("elsewhere"));
    done.store(true);
  });
  StartCountingAllocations();
  go.store(true);
  while (!done.load()) {
  }
  EXPECT_EQ(StopCountingAllocations(), 0);
  other.join();
}

TEST(ProcessFacts, SeeDescriptorsThreadsAndMemory) {
  const int descriptors = tests::OpenDescriptors();
  const int fd = dup(0);
  EXPECT_EQ(tests::OpenDescriptors(), descriptors + 1);
  close(fd);
  for (int i = 0; i < 500 && tests::Threads() > 1; ++i) usleep(10000);  // joined threads leave
  EXPECT_EQ(tests::Threads(), 1);
  EXPECT_GT(tests::PssKib(), 0);
}

}  // namespace
}  // namespace viaduct::hotpath
