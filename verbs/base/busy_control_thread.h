// For tests of code that must not wait for the control thread.
#ifndef VIADUCT_VERBS_BASE_BUSY_CONTROL_THREAD_H_
#define VIADUCT_VERBS_BASE_BUSY_CONTROL_THREAD_H_

#include <chrono>
#include <future>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"

namespace viaduct::verbs {

// Keeps the control thread in a call until LetGo or destruction, but not for ever.
class BusyControlThread {
 public:
  BusyControlThread() {
    std::promise<void> begun;
    thread_.Post([&] {
      begun.set_value();
      in_time_.set_value(over_.get_future().wait_for(std::chrono::seconds(10)) ==
                         std::future_status::ready);
    });
    begun.get_future().wait();
  }
  ~BusyControlThread() {
    if (!let_go_) LetGo();
  }
  BusyControlThread(const BusyControlThread&) = delete;
  BusyControlThread& operator=(const BusyControlThread&) = delete;

  // Returns when the control thread has left the call.
  void LetGo() {
    let_go_ = true;
    over_.set_value();
    EXPECT_TRUE(in_time_.get_future().get()) << "somebody has waited for it";
    thread_.Drain();
  }

 private:
  ControlThread& thread_ = **ControlThread::Get();
  std::promise<void> over_;
  std::promise<bool> in_time_;
  bool let_go_ = false;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BUSY_CONTROL_THREAD_H_
