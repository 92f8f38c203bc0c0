// The RDMA adapters of this host, under the names by which programs open them.
#ifndef VIADUCT_VERBS_RDMA_ADAPTER_H_
#define VIADUCT_VERBS_RDMA_ADAPTER_H_

#include <string>
#include <vector>

#include "verbs/base/address.h"
#include "verbs/rdma_port.h"

namespace viaduct::verbs {

struct RdmaAdapter {
  std::string name;    // the device's; "mlx5_0:2" if several of its ports are listed
  std::string device;  // as ibv_devices names it
  Address address;     // the first IPv4 address that leads to the port, else the first address
  int port = 0;        // the port's number, from 1
};

// One for each device and port.
std::vector<RdmaAdapter> AdaptersOf(const std::vector<RdmaPort>& ports);

// The adapter of that name or, if the name is a device's, the one at its port of that number (0:
// at the first one that is listed); null if there is none.
const RdmaAdapter* FindAdapter(const std::vector<RdmaAdapter>& adapters, const std::string& name,
                               int port);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_RDMA_ADAPTER_H_
