#include "tests/faults/killer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "gtest/gtest.h"

namespace viaduct::tests {
namespace {

constexpr unsigned kLongestIdle = 600;  // seconds

int Reap(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

int Rounds(int usual, int many) {
  static const bool is_long = getenv("VIADUCT_LONG") != nullptr;
  unsetenv("VIADUCT_LONG");  // the tests' setting: the library neither reads it nor warns of it
  return is_long ? many : usual;
}

Victim::Victim(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  failed_.Watch();
  try {
    body();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "exception: " << e.what();
  }
  fflush(nullptr);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

Victim::~Victim() {
  if (alive()) Kill();
}

void Victim::Kill() {
  ASSERT_TRUE(alive());
  kill(pid_, SIGKILL);
  const int status = Reap(pid_);
  pid_ = -1;
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "it had ended before, with status " << status;
  EXPECT_FALSE(failed_.raised()) << "see above";
}

int Victim::Join() {
  const int status = Reap(pid_);
  pid_ = -1;
  return status;
}

RandomInstant::RandomInstant() {
  const unsigned seed = std::random_device()();
  printf("seed: %u\n", seed);
  engine_.seed(seed);
}

void RandomInstant::Pass(int most) {
  usleep(static_cast<useconds_t>(std::uniform_int_distribution<int>(0, most)(engine_)));
}

pid_t ForkIdleChild() {
  NumberPipe begun;
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kLongestIdle);  // for a test that ends early and does not kill it
    begun.Put(0);
    for (;;) pause();
  }
  begun.OnlyGet();
  begun.Get();
  return pid;
}

void KeepOrphans() { ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

void KillOrphan(pid_t pid) {
  ASSERT_GT(pid, 0);
  kill(pid, SIGKILL);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

NumberPipe::NumberPipe() {
  if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
}
NumberPipe::~NumberPipe() {
  for (int end : ends_) {
    if (end >= 0) close(end);
  }
}
void NumberPipe::Put(int value) {
  ASSERT_EQ(write(ends_[1], &value, sizeof value), static_cast<ssize_t>(sizeof value));
}
int NumberPipe::Get() {
  int value;
  if (read(ends_[0], &value, sizeof value) != sizeof value) {
    throw std::runtime_error("the victim has ended early");
  }
  return value;
}
void NumberPipe::OnlyGet() {
  close(ends_[1]);
  ends_[1] = -1;
}

}  // namespace viaduct::tests
