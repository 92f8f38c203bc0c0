// The control thread in a forked child and in an exiting process. The tests make processes, which
// TSan does not follow, and no threads of their own.
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/testing_child.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kHour = 3'600'000'000'000;

int CountDescriptorsOfKind(const char* kind) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (dirent* entry = readdir(directory)) {
    char target[256];
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    const ssize_t length = readlink(path.c_str(), target, sizeof(target) - 1);
    if (length > 0 && std::string(target, length).find(kind) != std::string::npos) ++count;
  }
  closedir(directory);
  return count;
}

// Must be the first test: a process that has a loop starts no thread.
TEST(ControlThreadStart, SaysInWordsWhatIsMissing) {
  EXPECT_EQ(InChild([] {
              if (!ForbidCalls({SYS_clone, SYS_clone3}, EAGAIN)) return 1;
              const absl::Status status = ControlThread::Get().status();
              if (!absl::IsResourceExhausted(status)) return 2;
              const char* const words = "pthread_create: Resource temporarily unavailable";
              return absl::StrContains(status.message(), words) ? 0 : 3;
            }),
            0);
}

// The state of a thread of this process, as in proc(5): 'S' while it sleeps.
char StateOf(pid_t thread) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.at(text.rfind(')') + 2);
}

TEST(ControlThreadFork, ADrainInWhichASignalHandlerForksEndsInTheChild) {
  static std::atomic<pid_t> forked;
  forked = -1;
  const auto before = signal(SIGUSR1, [](int) {  // with SA_RESTART
    const pid_t child = fork();
    if (child == 0) alarm(10);
    forked = child;
  });
  ControlThread& loop = **ControlThread::Get();
  loop.Post([thread = pthread_self(), id = gettid()] {
    while (StateOf(id) != 'S') sched_yield();
    pthread_kill(thread, SIGUSR1);
    while (forked < 0) sched_yield();
  });
  loop.Drain();
  if (forked == 0) _exit(0);
  signal(SIGUSR1, before);
  int status = -1;
  EXPECT_EQ(waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0) << "the child still waits";
}

TEST(ControlThreadFork, TheChildsLoopIsDead) {
  ControlThread& loop = **ControlThread::Get();
  const Executor::TimerId timer = loop.RunAt(loop.Now() + kHour, [] {});
  EXPECT_EQ(InChild([&] {
              if (loop.alive()) return 1;
              loop.Post([] { _exit(3); });
              loop.RunAt(0, [] { _exit(4); });
              loop.Drain();
              if (!loop.Cancel(timer)) return 5;
              if (loop.Watch(0, EPOLLIN, [](uint32_t) {}).ok()) return 6;
              loop.Unwatch(0);
              if (loop.OnExecutor()) return 7;
              return 0;
            }),
            0);
  EXPECT_TRUE(loop.alive());
  EXPECT_TRUE(loop.Cancel(timer));
}

TEST(ControlThreadFork, TheChildHasNoDescriptorsOfIt) {
  ASSERT_TRUE(ControlThread::Get().ok());
  EXPECT_EQ(CountDescriptorsOfKind("eventpoll"), 1);
  EXPECT_EQ(CountDescriptorsOfKind("eventfd"), 1);
  EXPECT_EQ(InChild([] {
              return CountDescriptorsOfKind("eventpoll") + CountDescriptorsOfKind("eventfd");
            }),
            0);
}

// Returns 0, or a number for what is wrong with the loop that a child gets.
int UseOwnLoop(const ControlThread& parents) {
  const absl::StatusOr<ControlThread*> got = ControlThread::Get();
  if (!got.ok() || *got == &parents) return 1;
  ControlThread& own = **got;
  if (*ControlThread::Get() != &own || !own.alive() || parents.alive()) return 2;
  std::atomic<bool> ran{false};
  own.Post([&] { ran = own.OnExecutor(); });
  own.Drain();
  if (!ran) return 3;
  const std::unique_ptr<Parker> parker = own.NewParker();
  own.RunAt(0, [&] { parker->Unpark(); });
  const ParkResult parked = parker->Park(Deadline::After(own, kHour / 60));
  return parked == ParkResult::kUnparked ? 0 : 4;
}

TEST(ControlThreadFork, AChildAndItsChildHaveLoopsOfTheirOwn) {
  ControlThread& loop = **ControlThread::Get();
  EXPECT_EQ(InChild([&] {
              if (const int wrong = UseOwnLoop(loop); wrong != 0) return wrong;
              ControlThread& own = **ControlThread::Get();
              return 10 * InChild([&] { return UseOwnLoop(own); });
            }),
            0);
  EXPECT_TRUE(loop.alive());
}

TEST(ControlThreadExit, AChildsHooksRunWithoutItsParents) {
  ControlThread& loop = **ControlThread::Get();
  static int code;
  code = 0;
  loop.OnExit([](EventLoop&) { code += 1; });
  const EventLoop::ExitHook own = [](EventLoop&) { code += 2; };
  EXPECT_EQ(InChild([own] {
              (*ControlThread::Get())->OnExit(own);
              (*ControlThread::Get())->OnExit(own);  // registered twice, run once
              ControlThread::Leave();
              return code;
            }),
            2);
}

TEST(ControlThreadFork, TheParentsLoopGoesOn) {
  ControlThread& loop = **ControlThread::Get();
  Fd event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  std::unique_ptr<Parker> parker = loop.NewParker();
  ASSERT_TRUE(loop.Watch(event.get(), EPOLLIN | EPOLLET, [&](uint32_t) { parker->Unpark(); }).ok());
  EXPECT_EQ(InChild([&] {
              loop.Unwatch(event.get());
              return 0;
            }),
            0);
  const uint64_t one = 1;
  ASSERT_EQ(write(event.get(), &one, sizeof(one)), 8);
  EXPECT_EQ(parker->Park(Deadline::After(loop, kHour / 60)), ParkResult::kUnparked);
  loop.Unwatch(event.get());
}

TEST(ControlThreadFork, AForkWhileOthersPostInheritsNoLock) {
  ControlThread& loop = **ControlThread::Get();
  // The loop itself posts without end, so that its lock is taken at many of the forks.
  static bool stop;
  stop = false;
  std::function<void()> again = [&] {
    if (!stop) loop.Post(again);
  };
  loop.Post(again);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(InChild([&] {
                loop.Post([] {});
                loop.Drain();
                return 0;
              }),
              0);
  }
  loop.Post([] { stop = true; });
  loop.Drain();
  loop.Drain();
}

TEST(ControlThreadExit, ExitMeetsTheLoopAtWork) {
  // The exit of a new program, in which nothing but this loop exists.
  EXPECT_EXIT(
      {
        ControlThread& loop = **ControlThread::Get();
        static std::function<void()> again = [&loop] { loop.Post(again); };
        loop.Post(again);
        exit(9);
      },
      testing::ExitedWithCode(9), "");
}

bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.find(") S ") != std::string::npos;
}

// As on a busy machine: the loop does not get to run before exit() waits for it.
TEST(ControlThreadExit, HooksRunThoughTheLoopComesLate) {
  EXPECT_EXIT(
      {
        static std::atomic<bool> exits{false};
        ControlThread& loop = **ControlThread::Get();
        loop.OnExit([](EventLoop&) { _exit(9); });
        atexit([] { exits = true; });
        loop.Post([thread = gettid()] {
          while (!exits || !Sleeps(thread)) sched_yield();
        });
        exit(3);
      },
      testing::ExitedWithCode(9), "");
}

}  // namespace
}  // namespace viaduct::verbs

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  return RUN_ALL_TESTS();
}
