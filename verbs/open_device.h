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
// kAnyDevice, which is the soft device; the soft device with one of its wires alone: "shm",
// "iwarp"; "rdma", the RDMA device that has the address; or an RDMA device as ibv_devices names it
// (NotFound for others). VIADUCT_WIRE, where it is not "auto", overrides those of the soft device.
// ResourceExhausted: no descriptors, no memory, no thread. PermissionDenied: /dev/infiniband is
// closed to this user. FailedPrecondition: an RDMA device, and this is a forked child whose parent
// had one. Unavailable: the RDMA device was taken out, or does not answer. attributes().reason says
// why this device was chosen.
absl::StatusOr<std::unique_ptr<Context>> OpenDevice(const Address& address,
                                                    const std::string& name = kAnyDevice);

// The ports of RDMA devices that an address of an interface leads to. A device whose interface has
// several addresses is there several times. Empty, without a look at rdma-core, where this machine
// has no device.
std::vector<RdmaPort> ListRdmaPorts();

// The same as adapters.
std::vector<RdmaAdapter> ListRdmaAdapters();

// The kernel has an RDMA device by whose name an adapter would have this one, whether or not
// ListRdmaAdapters finds it: that takes rights, an address and rdma-core.
bool NamesRdmaDevice(const std::string& adapter);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_OPEN_DEVICE_H_
