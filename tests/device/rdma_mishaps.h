// What the tests of an RDMA device's mishaps have in common (tests/rdma_mock).
#ifndef VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
#define VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_

#include <future>

#include "tests/device/ends.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {

// None of them outlives its test.
class MishapsTest : public DeviceTest {
 protected:
  ~MishapsTest() override { rdma_mock::EndMishaps(); }
};

// A control thread that is in a call until LetGo, or this ends.
class BusyControlThread {
 public:
  explicit BusyControlThread(Context& context) : executor_(context.executor()) {
    std::promise<void> begun;
    executor_.Post([&] {
      begun.set_value();
      over_.get_future().wait();
    });
    begun.get_future().wait();
  }
  ~BusyControlThread() {
    if (!let_go_) LetGo();
  }
  BusyControlThread(const BusyControlThread&) = delete;
  BusyControlThread& operator=(const BusyControlThread&) = delete;

  void LetGo() {
    let_go_ = true;
    over_.set_value();
    executor_.Drain();
  }

 private:
  Executor& executor_;
  std::promise<void> over_;
  bool let_go_ = false;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_RDMA_MISHAPS_H_
