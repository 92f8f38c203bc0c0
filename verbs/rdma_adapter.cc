#include "verbs/rdma_adapter.h"

#include <algorithm>

namespace viaduct::verbs {

std::vector<RdmaAdapter> AdaptersOf(const std::vector<RdmaPort>& ports) {
  std::vector<RdmaAdapter> adapters;
  for (auto port = ports.begin(); port != ports.end(); ++port) {
    const auto is_same = [&](const RdmaPort& other) {
      return other.device == port->device && other.number == port->number;
    };
    if (std::any_of(ports.begin(), port, is_same)) continue;  // another address of it
    const bool alone = std::all_of(ports.begin(), ports.end(), [&](const RdmaPort& other) {
      return other.device != port->device || other.number == port->number;
    });
    adapters.push_back({alone ? port->device : port->device + ":" + std::to_string(port->number),
                        port->device, port->address});
  }
  return adapters;
}

}  // namespace viaduct::verbs
