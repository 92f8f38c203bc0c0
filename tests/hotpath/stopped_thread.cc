#include "tests/hotpath/stopped_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace viaduct::hotpath {
namespace {

constexpr int kPatienceSeconds = 20;

enum State : int { kRunning, kStopped, kLetGo, kGivenUp };
std::atomic<int> state{kRunning};
std::atomic<bool> over{false};

time_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void StayHere(int) {
  const int error = errno;
  const time_t start = Now();
  state.store(kStopped);
  while (state.load() == kStopped) {
    sched_yield();
    int stopped = kStopped;
    if (Now() - start > kPatienceSeconds) state.compare_exchange_strong(stopped, kGivenUp);
  }
  int let_go = kLetGo;
  state.compare_exchange_strong(let_go, kRunning);
  errno = error;
}

}  // namespace

StoppableThread::StoppableThread(std::function<void()> work) {
  struct sigaction action = {};
  action.sa_handler = StayHere;
  sigaction(SIGUSR1, &action, nullptr);
  over = false;
  thread_ = std::thread([work = std::move(work)] {
    while (!over) work();
  });
}

StoppableThread::~StoppableThread() {
  over = true;
  thread_.join();
}

void StoppableThread::Stop() {
  while (state.load() != kRunning) poll(nullptr, 0, 0);
  pthread_kill(thread_.native_handle(), SIGUSR1);
  while (state.load() == kRunning) poll(nullptr, 0, 0);
}

bool StoppableThread::LetGo() {
  int stopped = kStopped;
  if (state.compare_exchange_strong(stopped, kLetGo)) return true;
  state.store(kRunning);
  return false;
}

}  // namespace viaduct::hotpath
