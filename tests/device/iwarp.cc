// The suite over TCP, both ends in this process.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "tests/device/device_under_test.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/context.h"
#include "verbs/soft/futex_doorbell.h"
#include "verbs/soft/iwarp/wire.h"

namespace viaduct::verbs {
namespace {

using iwarp::IwarpWire;

constexpr Nanos kSecond = 1'000'000'000;

std::unique_ptr<Context> OpenAt(absl::string_view address) {
  ControlThread& loop = **ControlThread::Get();
  SoftContext::Options options;
  options.address = *Address::Parse(address);
  options.executor = &loop;
  options.doorbell = std::make_unique<FutexDoorbell>(20'000);
  IwarpWire::Options wire;
  wire.address = options.address;
  options.wires.push_back(std::make_unique<IwarpWire>(loop, wire));
  options.attributes.device = "soft";
  options.attributes.max_queue_pairs = 65536;
  options.attributes.max_requests_per_queue = 16384;
  options.attributes.max_segments = 256;
  options.attributes.max_reads_in = options.attributes.max_reads_out = IwarpWire::kMaxReads;
  options.attributes.max_regions = 65536;
  options.attributes.max_region_bytes = uint64_t{1} << 40;
  options.attributes.max_message_bytes = IwarpWire::kMaxMessageBytes;
  options.attributes.max_private_data = IwarpWire::kMaxPrivateData;
  return std::make_unique<SoftContext>(std::move(options));
}

class Iwarp final : public DeviceUnderTest {
 public:
  Iwarp() : a_(OpenAt("127.0.0.1")), b_(OpenAt("127.0.0.2")) {}

  Context& a() override { return *a_; }
  Context& b() override { return *b_; }
  bool threads() const override { return true; }

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
    const Nanos end = clock.Now() + kSecond / 50;
    while (clock.Now() < end) poll();
  }

 private:
  std::unique_ptr<Context> a_;
  std::unique_ptr<Context> b_;
};

}  // namespace

std::unique_ptr<DeviceUnderTest> DeviceUnderTest::Make() { return std::make_unique<Iwarp>(); }

}  // namespace viaduct::verbs
