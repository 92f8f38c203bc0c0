#include "tests/conformance/harness/sleeper.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

constexpr int64_t kPatience = 10'000'000'000;

std::string ThreadsOf(pid_t process) { return "/proc/" + std::to_string(process) + "/task"; }

// Of a thread in ThreadsOf(); 0: it has gone.
char StateOf(const std::string& thread) {
  FILE* file = fopen((thread + "/stat").c_str(), "re");
  if (file == nullptr) return 0;
  char state = 0;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  fclose(file);
  return state;
}

bool AllStopped(pid_t process) {
  const std::filesystem::directory_iterator threads(ThreadsOf(process));
  return std::all_of(begin(threads), end(threads),
                     [](const auto& thread) { return StateOf(thread.path()) == 'T'; });
}

}  // namespace

void AwaitAsleep(pid_t process, pid_t thread) {
  const std::string path = ThreadsOf(process) + "/" + std::to_string(thread);
  const int64_t end = Now() + kPatience;
  char state;
  while ((state = StateOf(path)) != 'S' && state != 0 && Now() < end) sched_yield();
  EXPECT_EQ(state, 'S') << path;
}

void StopProcess(pid_t process) {
  ASSERT_EQ(kill(process, SIGSTOP), 0);
  const int64_t end = Now() + kPatience;
  while (!AllStopped(process) && Now() < end) sched_yield();
  EXPECT_TRUE(AllStopped(process)) << process;
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

void CancelAsleep(int type, const std::function<void()>& wait) {
  bool returned = false;
  Sleeper sleeper([&] {
    int old;
    pthread_setcanceltype(type, &old);
    wait();
    returned = true;
  });
  sleeper.AwaitAsleep();
  sleeper.Cancel();
  sleeper.Join();
  EXPECT_FALSE(returned);
}

}  // namespace viaduct::tests
