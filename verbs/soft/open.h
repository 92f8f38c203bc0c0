// Opens the soft device.
#ifndef VIADUCT_VERBS_SOFT_OPEN_H_
#define VIADUCT_VERBS_SOFT_OPEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::verbs {

// `address` is one of this host's. `wires` is "auto" for both, "shm" or "iwarp"; VIADUCT_WIRE,
// where it names one wire, overrides it. The errors are those of OpenDevice.
absl::StatusOr<std::unique_ptr<Context>> OpenSoftDevice(const Address& address,
                                                        const std::string& wires);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_OPEN_H_
