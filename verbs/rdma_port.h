// A port of an RDMA device and an address that leads to it.
#ifndef VIADUCT_VERBS_RDMA_PORT_H_
#define VIADUCT_VERBS_RDMA_PORT_H_

#include <string>

#include "verbs/base/address.h"

namespace viaduct::verbs {

struct RdmaPort {
  std::string device;  // as ibv_devices names it
  int number = 0;      // from 1
  Address address;     // of the interface behind it
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_RDMA_PORT_H_
