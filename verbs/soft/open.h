// Opens the soft device with the wires that VIADUCT_WIRE allows.
#ifndef VIADUCT_VERBS_SOFT_OPEN_H_
#define VIADUCT_VERBS_SOFT_OPEN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::verbs {

// `address` is one of this host's. The errors are those of OpenDevice.
absl::StatusOr<std::unique_ptr<Context>> OpenSoftDevice(const Address& address);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_OPEN_H_
