// Opens the soft device.
#ifndef VIADUCT_VERBS_SOFT_OPEN_H_
#define VIADUCT_VERBS_SOFT_OPEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::verbs {

// `address` is an address of this host. `wires` is "shm", "iwarp", or "auto" for both; VIADUCT_WIRE
// overrides it if it names a wire. The errors are those of OpenDevice.
absl::StatusOr<std::unique_ptr<Context>> OpenSoftDevice(const Address& address,
                                                        const std::string& wires);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_OPEN_H_
