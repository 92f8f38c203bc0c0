// The suite over TCP, both ends in this process. With IWARP_SUITE_FRAMED each connection is framed,
// as between a soft device and an iWARP driver.
#include <cstdlib>
#include <memory>

#include "absl/strings/string_view.h"
#include "tests/device/soft_context.h"
#include "tests/device/two_contexts.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/futex_doorbell.h"
#include "verbs/soft/iwarp/wire.h"

namespace viaduct::verbs {
namespace {

using iwarp::IwarpWire;

std::unique_ptr<Context> OpenAt(absl::string_view address) {
  IwarpWire::Options wire;
  wire.address = *Address::Parse(address);
  wire.nudge = 0;  // no test causes a nudge, and it takes locks that a test may hold
  DeviceAttributes limits;
  limits.max_reads_in = limits.max_reads_out = IwarpWire::kMaxReads;
  limits.max_message_bytes = IwarpWire::kMaxMessageBytes;
  limits.max_private_data = IwarpWire::kMaxPrivateData;
  return OpenSoft(address, std::make_unique<IwarpWire>(**ControlThread::Get(), wire),
                  std::make_unique<FutexDoorbell>(kSoftSpin), limits);
}

class Iwarp final : public TwoContexts {
 public:
  explicit Iwarp(bool framed)
      : TwoContexts(OpenAt("127.0.0.1"), OpenAt("127.0.0.2"), kSoftSettling), framed_(framed) {}
  ImmediateForm immediate_form() const override {
    return framed_ ? ImmediateForm::kFramed : ImmediateForm::kNative;
  }
  ImmediateForm usual_form() const override {
    return framed_ ? ImmediateForm::kFramed : ImmediateForm::kNone;
  }

 private:
  const bool framed_;
};

}  // namespace

std::unique_ptr<DeviceUnderTest> DeviceUnderTest::Make() {
  return std::make_unique<Iwarp>(std::getenv("IWARP_SUITE_FRAMED") != nullptr);
}

}  // namespace viaduct::verbs
