#include "tests/faults/lives.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "tests/faults/failing_calls.h"
#include "tests/faults/killer.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

constexpr unsigned kLongestLife = 60;  // seconds
// Exit statuses of a life besides 0 and 1: it makes fewer such calls; the kernel has no filters.
constexpr int kNothingFailed = 7, kNoFilter = 8;
constexpr int kSeventh = 7;

// Runs a life with that failure, in its own process. Returns false if it makes fewer such calls.
bool Fail(const FailingCall& call, int n, void (*live)(bool)) {
  SCOPED_TRACE(std::string(call.name) + " " + std::to_string(n));
  Victim victim([&] {
    alarm(kLongestLife);
    Holdings most = HoldingsNow();
    most.threads += 3;  // the one that fails the call, and the library's own two, which stay
    most.descriptors += 3;
    if (!FailCall(call, n)) _exit(kNoFilter);
    try {
      live(false);
    } catch (const Refused& refused) {
      EXPECT_TRUE(CallHasFailed()) << "refused without a reason: " << refused.what();
    }
    EXPECT_TRUE(HoldsAtMost(most));
    if (!CallHasFailed() && !::testing::Test::HasFailure()) _exit(kNothingFailed);
  });
  const int status = victim.Join();
  EXPECT_FALSE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << "it hangs";
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  EXPECT_NE(code, kNoFilter) << "this kernel has no filters that ask";
  EXPECT_TRUE(code == 0 || code == kNothingFailed) << "wait status " << status;
  return code == 0;
}

// Runs a life that ends at that call. Returns false if it makes fewer calls.
bool Die(int n, void (*live)(bool)) {
  SCOPED_TRACE("call " + std::to_string(n));
  Victim victim([&] {
    alarm(kLongestLife);
    if (!DieAtCall(n)) _exit(kNoFilter);
    live(false);
    if (!::testing::Test::HasFailure()) _exit(kNothingFailed);
  });
  const int status = victim.Join();
  const bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(died || (WIFEXITED(status) && WEXITSTATUS(status) == kNothingFailed))
      << "wait status " << status;
  Victim next([&] {
    alarm(kLongestLife);
    live(false);
  });
  EXPECT_EQ(next.Join(), 0) << "the life behind it";
  return died;
}

// Runs `ordeal` between two whole lives, while the survivor lives.
void Between(void (*survive)(), void (*live)(bool last), absl::FunctionRef<void()> ordeal) {
  Victim survivor(survive);
  Victim first([&] { live(false); });
  EXPECT_EQ(first.Join(), 0);
  ordeal();
  if (::testing::Test::HasFailure()) return;
  Victim last([&] { live(true); });
  EXPECT_EQ(last.Join(), 0);
  EXPECT_EQ(survivor.Join(), 0);
}

}  // namespace

void FailEachCall(void (*survive)(), void (*live)(bool last)) {
  Between(survive, live, [live] {
    const int most = Rounds(4, 1000);
    for (const FailingCall& call : FailingCalls()) {
      for (int n = 1; n <= most && Fail(call, n, live); ++n) {
      }
      if (::testing::Test::HasFailure()) return;
    }
  });
}

void DieAtEachCall(void (*survive)(), void (*live)(bool last)) {
  Between(survive, live, [live] {
    const int step = kSeventh / Rounds(1, kSeventh);
    int n = 1 + static_cast<int>(std::random_device()() % static_cast<unsigned>(step));
    while (Die(n, live) && !::testing::Test::HasFailure()) n += step;
  });
}

}  // namespace viaduct::tests
