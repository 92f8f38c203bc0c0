#include "verbs/base/engine_thread.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/base/futex.h"

namespace viaduct::verbs {
namespace {

constexpr size_t kMiB = 1 << 20;

// Takes room in the stack of every thread.
thread_local volatile char large[2 * kMiB];

struct Seen {
  int detached = 0;
  size_t stack = 0;
  sigset_t blocked;
  std::atomic<uint32_t> done{0};
};

// Owned by a thread and by whoever waits for it.
using SharedSeen = std::shared_ptr<Seen>;

void* Look(void* to) {
  const std::unique_ptr<SharedSeen> own(static_cast<SharedSeen*>(to));
  const SharedSeen& seen = *own;
  large[0] = 1;
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getdetachstate(&attributes, &seen->detached);
  pthread_attr_getstacksize(&attributes, &seen->stack);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_BLOCK, nullptr, &seen->blocked);
  seen->done.store(1);
  FutexWake(seen->done, 1);
  return nullptr;
}

SharedSeen LookAround(size_t stack) {
  const SharedSeen seen = std::make_shared<Seen>();
  EXPECT_EQ(StartEngineThread(&Look, new SharedSeen(seen), stack), 0);
  while (seen->done.load() == 0) FutexWait(seen->done, 0, Deadline::Infinite());
  return seen;
}

TEST(EngineThread, IsDetached) { EXPECT_EQ(LookAround(0)->detached, PTHREAD_CREATE_DETACHED); }

TEST(EngineThread, RunsNoHandlerOfTheProgramButForItsOwnFaults) {
  const sigset_t blocked = LookAround(0)->blocked;
  for (int of_others : {SIGTERM, SIGINT, SIGALRM, SIGUSR1, SIGPROF}) {
    EXPECT_EQ(sigismember(&blocked, of_others), 1) << of_others;
  }
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    EXPECT_EQ(sigismember(&blocked, own), 0) << own;
  }
}

TEST(EngineThread, LeavesTheSignalsOfItsStarter) {
  sigset_t before, behind;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  LookAround(0);
  pthread_sigmask(SIG_BLOCK, nullptr, &behind);
  for (int signal = 1; signal < NSIG; ++signal) {
    EXPECT_EQ(sigismember(&behind, signal), sigismember(&before, signal)) << signal;
  }
}

// More than usual, since a thread may get the stack of an ended thread if that is large enough.
TEST(EngineThread, HasTheStackThatIsAskedFor) {
  EXPECT_GT(LookAround(64 * kMiB)->stack, 63 * kMiB);
}

TEST(EngineThread, HasTheUsualStackWhereTheProgramsVariablesNeedMore) {
  EXPECT_GT(LookAround(kMiB)->stack, sizeof large);
}

}  // namespace
}  // namespace viaduct::verbs
