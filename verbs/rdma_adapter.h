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
};

// One for each device and port.
std::vector<RdmaAdapter> AdaptersOf(const std::vector<RdmaPort>& ports);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_RDMA_ADAPTER_H_
