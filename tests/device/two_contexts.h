// A device that runs in real time: two contexts, and a time after which RunUntil gives up.
#ifndef VIADUCT_TESTS_DEVICE_TWO_CONTEXTS_H_
#define VIADUCT_TESTS_DEVICE_TWO_CONTEXTS_H_

#include <memory>
#include <utility>

#include "tests/device/device_under_test.h"
#include "verbs/base/clock.h"
#include "verbs/device.h"

namespace viaduct::verbs {

class TwoContexts : public DeviceUnderTest {
 public:
  // `settling`: how long Settle polls.
  TwoContexts(std::unique_ptr<Context> a, std::unique_ptr<Context> b, Nanos settling)
      : a_(std::move(a)), b_(std::move(b)), settling_(settling) {}

  Context& a() override { return *a_; }
  Context& b() override { return *b_; }
  bool threads() const override { return true; }

  bool RunUntil(absl::FunctionRef<bool()> done) override {
    const Nanos end = a_->executor().Now() + kPatience;
    while (!done()) {
      if (a_->executor().Now() > end) return false;
    }
    return true;
  }
  void Settle(absl::FunctionRef<void()> poll) override {
    const Nanos end = a_->executor().Now() + settling_;
    while (a_->executor().Now() < end) poll();
  }

 private:
  static constexpr Nanos kPatience = 20'000'000'000;
  const std::unique_ptr<Context> a_;
  const std::unique_ptr<Context> b_;
  const Nanos settling_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_TWO_CONTEXTS_H_
