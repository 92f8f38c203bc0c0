#include "verbs/rdma/aside.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs::rdma {
namespace {

// A call on another thread. If it waits, it returns only when this object is destroyed.
class Call {
 public:
  explicit Call(bool waits = true) : let_go_(!waits) {
    EXPECT_TRUE(errand_.Post(this));
    while (thread_ == 0) sched_yield();
  }
  ~Call() {
    let_go_ = true;
    while (!returned_) sched_yield();
  }
  pid_t thread() const { return thread_; }

 private:
  void Make() {
    thread_ = gettid();
    while (!let_go_) sched_yield();
    returned_ = true;
  }

  std::atomic<pid_t> thread_{0};
  std::atomic<bool> let_go_, returned_{false};
  AsideErrand<&Call::Make, Call> errand_;
};

bool Exists(pid_t thread) {
  return access(("/proc/self/task/" + std::to_string(thread)).c_str(), F_OK) == 0;
}

TEST(Aside, ACallThatWaitsHoldsUpNoOther) {
  std::vector<std::unique_ptr<Call>> waiting;
  for (int i = 0; i < 20; ++i) waiting.push_back(std::make_unique<Call>());
  for (const auto& call : waiting) {
    for (const auto& other : waiting)
      EXPECT_TRUE(&call == &other || call->thread() != other->thread());
  }
}

// Only a thread that already waits for a call has nothing to do: a call or two may come earlier.
TEST(Aside, AThreadThatHasNothingToDoTakesTheNextCall) {
  pid_t last = 0;
  for (bool again = false; !again;) {
    const Call call(/*waits=*/false);
    again = call.thread() == std::exchange(last, call.thread());
  }
}

TEST(Aside, AThreadThatGetsNoCallEnds) {
  pid_t thread;
  {
    const Call call;
    thread = call.thread();
    EXPECT_TRUE(Exists(thread));
  }
  while (Exists(thread)) sched_yield();
}

}  // namespace
}  // namespace viaduct::verbs::rdma
