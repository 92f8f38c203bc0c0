#include "tests/conformance/harness/sleeper.h"

#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

constexpr int64_t kPatience = 10'000'000'000;

}  // namespace

void AwaitAsleep(pid_t process, pid_t thread) {
  const std::string path =
      "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/stat";
  const int64_t end = Now() + kPatience;
  char state = 0;
  while (state != 'S' && Now() < end) {
    FILE* file = fopen(path.c_str(), "re");
    if (file == nullptr) break;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
    fclose(file);
    sched_yield();
  }
  EXPECT_EQ(state, 'S') << path;
}

Sleeper::Sleeper(std::function<void()> body)
    : thread_([this, body = std::move(body)] {
        id_.store(gettid());
        body();
      }) {}

void Sleeper::AwaitAsleep() {
  while (id_.load() == 0) sched_yield();
  tests::AwaitAsleep(getpid(), id_.load());
}

}  // namespace viaduct::tests
