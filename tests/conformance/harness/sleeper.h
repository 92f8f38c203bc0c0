// Threads that fall asleep inside a call, or are stopped, so that a test need not guess when they
// have got there.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_SLEEPER_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_SLEEPER_H_

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <thread>

namespace viaduct::tests {

// Waits until the thread, of this or another process, has slept in one place in the kernel for so
// long, so that it is inside the call that it was about to make: a lock on its way there, whose
// holder has lost its processor, takes less time. Fails after 10 s.
void AwaitAsleep(pid_t process, pid_t thread, int milliseconds = 10);

// Sends SIGSTOP, and returns when none of the process's threads runs any more. Fails after 10 s.
void StopProcess(pid_t process);

// A thread that runs `body`; a test can wait until it falls asleep.
class Sleeper {
 public:
  explicit Sleeper(std::function<void()> body);
  void AwaitAsleep();
  void Interrupt(int signal) { pthread_kill(thread_.native_handle(), signal); }
  void Cancel() { pthread_cancel(thread_.native_handle()); }
  void Join() { thread_.join(); }

 private:
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

// The reason why a test that uses CancelAsleep is skipped where kSeesThreadsOnly.
inline constexpr char kLosesTheCancelled[] = "ThreadSanitizer loses a cancelled thread";

// Runs `wait` in a thread with this cancellation type (pthread_setcanceltype), and cancels the
// thread in its sleep: `wait` must not return.
void CancelAsleep(int type, const std::function<void()>& wait);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_SLEEPER_H_
