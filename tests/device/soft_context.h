// A soft device with one wire.
#ifndef VIADUCT_TESTS_DEVICE_SOFT_CONTEXT_H_
#define VIADUCT_TESTS_DEVICE_SOFT_CONTEXT_H_

#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "verbs/base/address.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/context.h"

namespace viaduct::verbs {

inline constexpr Nanos kSoftSpin = 20'000;
inline constexpr Nanos kSoftSettling = 20'000'000;

// `limits` has the wire's own limits; the others are set here.
inline std::unique_ptr<Context> OpenSoft(absl::string_view address, std::unique_ptr<Wire> wire,
                                         std::unique_ptr<Doorbell> doorbell,
                                         const DeviceAttributes& limits) {
  SoftContext::Options options;
  options.address = *Address::Parse(address);
  options.executor = *ControlThread::Get();
  options.doorbell = std::move(doorbell);
  options.wires.push_back(std::move(wire));
  options.attributes = limits;
  options.attributes.device = "soft";
  options.attributes.max_queue_pairs = 65536;
  options.attributes.max_requests_per_queue = options.attributes.max_shared_receives = 16384;
  options.attributes.max_segments = 256;
  options.attributes.max_regions = 65536;
  options.attributes.max_region_bytes = uint64_t{1} << 40;
  return std::make_unique<SoftContext>(std::move(options));
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_TESTS_DEVICE_SOFT_CONTEXT_H_
