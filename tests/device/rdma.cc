// The suite over an RDMA device: both ends at the address that the environment names
// (VIADUCT_RDMA_ADDRESS). Run by tests/lab, where there is one. With RDMA_SUITE_FRAMED each
// connection of a device without immediate data is framed.
#include <cstdlib>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/device/two_contexts.h"
#include "verbs/base/control_thread.h"
#include "verbs/rdma/open.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kSpin = 20'000;
constexpr Nanos kSettling = 100'000'000;

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

class Rdma final : public TwoContexts {
 public:
  Rdma() : TwoContexts(OpenAt(AddressOfTheLab()), OpenAt(AddressOfTheLab()), kSettling) {}

  bool tells_solicited() const override { return false; }
  bool serves_in_turn() const override { return false; }
  bool holds_messages() const override { return !iwarp_; }
  bool limits_drops() const override { return true; }
  ImmediateForm immediate_form() const override {
    return iwarp_ ? ImmediateForm::kFramed : ImmediateForm::kNative;
  }
  ImmediateForm usual_form() const override {
    return framed_ ? ImmediateForm::kFramed : ImmediateForm::kNone;
  }

 private:
  const bool iwarp_ = !a().attributes().immediate_data;
  const bool framed_ = iwarp_ && std::getenv("RDMA_SUITE_FRAMED") != nullptr;
};

}  // namespace

std::unique_ptr<DeviceUnderTest> DeviceUnderTest::Make() { return std::make_unique<Rdma>(); }

}  // namespace viaduct::verbs
