// The suite over the simulated wire.
#include "tests/device/device_under_test.h"
#include "verbs/sim/simulation.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

class Sim final : public DeviceUnderTest {
 public:
  Sim() : a_(simulation_.NewNode()), b_(simulation_.NewNode()) {}

  Context& a() override { return *a_; }
  Context& b() override { return *b_; }
  bool threads() const override { return false; }

  bool RunUntil(absl::FunctionRef<bool()> done) override {
    SimExecutor& executor = simulation_.executor();
    return executor.RunUntil(done, Deadline::After(executor, 60 * kSecond));
  }
  void Settle(absl::FunctionRef<void()> poll) override {
    SimExecutor& executor = simulation_.executor();
    executor.RunUntil(
        [&] {
          poll();
          return false;
        },
        Deadline::After(executor, kSecond / 50));
  }

 private:
  Simulation simulation_;
  std::unique_ptr<Context> a_;
  std::unique_ptr<Context> b_;
};

}  // namespace

std::unique_ptr<DeviceUnderTest> DeviceUnderTest::Make() { return std::make_unique<Sim>(); }

}  // namespace viaduct::verbs
