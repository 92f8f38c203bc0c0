// Which device serves an address: the one place that knows all of them.
#ifndef VIADUCT_VERBS_OPEN_DEVICE_H_
#define VIADUCT_VERBS_OPEN_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/device.h"
#include "verbs/rdma_adapter.h"
#include "verbs/rdma_port.h"

namespace viaduct::verbs {

// Opens the device for `address`, which must be one of this host's (NotFound otherwise). `name` is
// one of:
//   kAnyDevice       the soft device
//   "shm", "iwarp"   the soft device with this wire only
//   "rdma"           the RDMA device that has the address
//   another name     the RDMA device that ibv_devices calls so (NotFound if there is none)
// VIADUCT_WIRE, if it is not "auto", overrides the names of the soft device. ResourceExhausted: no
// descriptors, no memory, no thread. PermissionDenied: /dev/infiniband is closed to this user.
// FailedPrecondition: it is an RDMA device, and this is a forked child whose parent had one open.
// Unavailable: the RDMA device was removed, or does not answer. attributes().reason says why this
// device was chosen.
absl::StatusOr<std::unique_ptr<Context>> OpenDevice(const Address& address,
                                                    const std::string& name = kAnyDevice);

// The ports of RDMA devices that an address of an interface leads to. A device whose interface has
// several addresses is listed several times. Empty on a machine without RDMA devices, where
// rdma-core is not loaded. Throws std::bad_alloc if memory or descriptors are short now.
std::vector<RdmaPort> ListRdmaPorts();

// The same as adapters.
std::vector<RdmaAdapter> ListRdmaAdapters();

// True if the kernel has the RDMA device of an adapter with this name (the part before a ':'),
// whether or not ListRdmaAdapters finds it: to be listed, a device needs access rights, an address
// and rdma-core.
bool NamesRdmaDevice(const std::string& adapter);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_OPEN_DEVICE_H_
