// What libviaduct-rdma.so.1 exports. The library is opened only where a device exists, because
// librdmacm calls sem_*, which some old programs define themselves, and so that a plain machine
// needs no rdma-core.
#ifndef VIADUCT_VERBS_RDMA_MODULE_H_
#define VIADUCT_VERBS_RDMA_MODULE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/device.h"
#include "verbs/rdma_port.h"

namespace viaduct::verbs::rdma {

struct Module {
  // The ports of all devices whose interfaces have an address. Empty: none, or none may be used
  // (logged).
  std::vector<RdmaPort> (*list_ports)();
  // The device that has `address`, which must be `name` unless that is empty. A wait polls for
  // `spin` before it sleeps. NotFound: none has it; the other errors are those of OpenDevice.
  absl::StatusOr<std::unique_ptr<Context>> (*open)(EventLoop& loop, const Address& address,
                                                   const std::string& name, Nanos spin);
};

}  // namespace viaduct::verbs::rdma

// The module's one export.
extern "C" const viaduct::verbs::rdma::Module viaduct_rdma_module;

#endif  // VIADUCT_VERBS_RDMA_MODULE_H_
