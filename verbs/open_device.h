// Which device serves an address: the one place that knows all of them.
#ifndef VIADUCT_VERBS_OPEN_DEVICE_H_
#define VIADUCT_VERBS_OPEN_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::verbs {

// Opens the device for `address`, which must be one of this host's (NotFound otherwise). `name` is
// kAnyDevice, or the soft device with one of its wires alone: "shm", "iwarp" (NotFound for others).
// ResourceExhausted: no descriptors, no memory, no thread. FailedPrecondition: a forked child.
// attributes().reason says why this device was chosen; VIADUCT_WIRE may force a wire.
absl::StatusOr<std::unique_ptr<Context>> OpenDevice(const Address& address,
                                                    const std::string& name = kAnyDevice);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_OPEN_DEVICE_H_
