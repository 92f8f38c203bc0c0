// Finds RDMA devices and opens them.
#ifndef VIADUCT_VERBS_RDMA_OPEN_H_
#define VIADUCT_VERBS_RDMA_OPEN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/base/event_loop.h"
#include "verbs/device.h"
#include "verbs/rdma_port.h"

namespace viaduct::verbs::rdma {

// The ports of devices whose interfaces have an address. Empty: none, or none we may open (logged).
// Throws std::bad_alloc if memory or descriptors are short now.
std::vector<RdmaPort> ListPorts();

// The device that has `address`, which must be `name` unless that is empty. NotFound: none has it;
// the other errors are those of OpenDevice.
absl::StatusOr<std::unique_ptr<Context>> Open(EventLoop& loop, const Address& address,
                                              const std::string& name, Nanos spin);

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_OPEN_H_
