#include "tests/conformance/harness/sleeper.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace viaduct::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Clock::duration kPatience = std::chrono::seconds(10);
constexpr useconds_t kBetweenLooks = 1000;

std::string ThreadsOf(pid_t process) { return "/proc/" + std::to_string(process) + "/task"; }

// The state of a thread in ThreadsOf(); 0: the thread has gone.
char StateOf(const std::string& thread) {
  FILE* file = fopen((thread + "/stat").c_str(), "re");
  if (file == nullptr) return 0;
  char state = 0;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  fclose(file);
  return state;
}

// How often a thread has gone to sleep in the kernel; -1: it does not sleep.
long SleepsOf(const std::string& thread) {
  std::ifstream lines(thread + "/status");
  bool asleep = false;
  for (std::string word; lines >> word;) {
    if (word == "State:") asleep = lines >> word && word == "S";
    long count;
    if (word == "voluntary_ctxt_switches:" && lines >> count) return asleep ? count : -1;
  }
  return -1;
}

bool AllStopped(pid_t process) {
  const std::filesystem::directory_iterator threads(ThreadsOf(process));
  return std::all_of(begin(threads), end(threads),
                     [](const auto& thread) { return StateOf(thread.path()) == 'T'; });
}

}  // namespace

void AwaitAsleep(pid_t process, pid_t thread, int milliseconds) {
  const std::string path = ThreadsOf(process) + "/" + std::to_string(thread);
  const Clock::time_point end = Clock::now() + kPatience;
  long last = -1;
  int seen = 0;
  while (seen < milliseconds) {
    const long sleeps = SleepsOf(path);
    seen = sleeps < 0 ? 0 : sleeps == last ? seen + 1 : 1;
    last = sleeps;
    if (Clock::now() > end || StateOf(path) == 0) break;
    usleep(kBetweenLooks);
  }
  EXPECT_EQ(seen, milliseconds) << path << " does not sleep";
}

void StopProcess(pid_t process) {
  ASSERT_EQ(kill(process, SIGSTOP), 0);
  const Clock::time_point end = Clock::now() + kPatience;
  while (!AllStopped(process) && Clock::now() < end) sched_yield();
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
