// The suite over an RDMA device: both ends at the address that the environment names
// (VIADUCT_RDMA_ADDRESS). Run by tests/lab, where there is one.
#include <cstdlib>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/device/device_under_test.h"
#include "verbs/base/control_thread.h"
#include "verbs/rdma/open.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kSpin = 20'000;

std::unique_ptr<Context> OpenAt(const std::string& text) {
  const std::optional<Address> address = Address::Parse(text);
  EXPECT_TRUE(address.has_value()) << text;
  auto context = rdma::Open(**ControlThread::Get(), *address, "", kSpin);
  EXPECT_TRUE(context.ok()) << context.status();
  return *std::move(context);
}

std::string AddressOfTheLab() {
  const char* const address = std::getenv("VIADUCT_RDMA_ADDRESS");
  return address != nullptr ? address : "10.9.0.1";
}

class Rdma final : public DeviceUnderTest {
 public:
  Rdma() : a_(OpenAt(AddressOfTheLab())), b_(OpenAt(AddressOfTheLab())) {}

  Context& a() override { return *a_; }
  Context& b() override { return *b_; }
  bool threads() const override { return true; }
  bool tells_solicited() const override { return false; }

  bool RunUntil(absl::FunctionRef<bool()> done) override {
    Executor& clock = a_->executor();
    const Nanos end = clock.Now() + 20 * kSecond;
    while (!done()) {
      if (clock.Now() > end) return false;
    }
    return true;
  }
  void Settle(absl::FunctionRef<void()> poll) override {
    Executor& clock = a_->executor();
    const Nanos end = clock.Now() + kSecond / 10;
    while (clock.Now() < end) poll();
  }

 private:
  std::unique_ptr<Context> a_;
  std::unique_ptr<Context> b_;
};

}  // namespace

std::unique_ptr<DeviceUnderTest> DeviceUnderTest::Make() { return std::make_unique<Rdma>(); }

}  // namespace viaduct::verbs
