// Notifiers (CNOs), dispatchers that trigger them, and the threads and agents that they notify.
#ifndef VIADUCT_TESTS_CONFORMANCE_DAT_NOTIFIED_SIDE_H_
#define VIADUCT_TESTS_CONFORMANCE_DAT_NOTIFIED_SIDE_H_

#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {

inline constexpr auto kSoftware = DAT_EVD_SOFTWARE_FLAG;
inline constexpr DAT_OS_WAIT_PROXY_AGENT kNoAgent = {nullptr, nullptr};

inline DAT_RETURN Post(DAT_EVD_HANDLE evd) {
  DAT_EVENT event = {};
  event.event_number = DAT_SOFTWARE_EVENT;
  return dat_evd_post_se(evd, &event);
}

inline DAT_CNO_HANDLE NewCno(const Side& side, DAT_OS_WAIT_PROXY_AGENT agent = kNoAgent) {
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  Must(dat_cno_create(side.ia, agent, &cno));
  return cno;
}

inline DAT_EVD_HANDLE NewEvd(const Side& side, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags = kSoftware,
                             DAT_COUNT length = 64) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  Must(dat_evd_create(side.ia, length, cno, flags, &evd));
  return evd;
}

// A notifier and a dispatcher that triggers it.
struct NotifiedSide : Side {
  explicit NotifiedSide(DAT_OS_WAIT_PROXY_AGENT agent = kNoAgent) : cno(NewCno(*this, agent)) {}
  const DAT_CNO_HANDLE cno;
  const DAT_EVD_HANDLE evd = tests::NewEvd(*this, cno);
};

// The dispatcher that the notifier names within kPatience.
inline DAT_EVD_HANDLE Told(DAT_CNO_HANDLE cno) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  Must(dat_cno_wait(cno, kPatience, &evd));
  return evd;
}

// Records an agent's calls.
struct Calls {
  std::atomic<int> count{0};
  std::atomic<DAT_EVD_HANDLE> evd{nullptr};
  static void Agent(DAT_PVOID instance, DAT_EVD_HANDLE evd) {
    auto* calls = static_cast<Calls*>(instance);
    calls->evd = evd;
    ++calls->count;
  }
  DAT_OS_WAIT_PROXY_AGENT agent() { return {this, &Agent}; }
  void Await(int n) {
    while (count < n) sched_yield();
  }
};

// Runs dat_cno_wait in a thread; the constructor returns once the thread sleeps in it.
class CnoWaiter {
 public:
  explicit CnoWaiter(DAT_CNO_HANDLE cno)
      : sleeper_([this, cno] {
          thread_ = pthread_self();
          result_ = dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &evd_);
        }) {
    sleeper_.AwaitAsleep();
  }
  DAT_RETURN Join() {
    sleeper_.Join();
    return result_;
  }
  DAT_EVD_HANDLE evd() const { return evd_; }
  pthread_t thread() const { return thread_; }

 private:
  std::atomic<pthread_t> thread_{};
  DAT_EVD_HANDLE evd_ = reinterpret_cast<DAT_EVD_HANDLE>(1);
  DAT_RETURN result_ = DAT_SUCCESS;
  Sleeper sleeper_;
};

// An adapter that this struct does not close, and a notifier of it.
struct NotifiedAdapter {
  explicit NotifiedAdapter(DAT_OS_WAIT_PROXY_AGENT agent = kNoAgent) {
    char name[] = "soft0";
    Must(dat_ia_open(name, 8, &async, &ia));
    Must(dat_cno_create(ia, agent, &cno));
  }
  // Posts to a new dispatcher that triggers the notifier.
  void Trigger() const {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    Must(dat_evd_create(ia, 1, cno, kSoftware, &evd));
    Must(Post(evd));
  }

  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_DAT_NOTIFIED_SIDE_H_
