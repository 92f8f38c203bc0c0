#include "verbs/rdma_adapter.h"

#include <sys/socket.h>

#include <algorithm>

namespace viaduct::verbs {

std::vector<RdmaAdapter> AdaptersOf(const std::vector<RdmaPort>& ports) {
  std::vector<RdmaAdapter> adapters;
  for (auto port = ports.begin(); port != ports.end(); ++port) {
    const auto is_same = [&](const RdmaPort& other) {
      return other.device == port->device && other.number == port->number;
    };
    if (std::any_of(ports.begin(), port, is_same)) continue;  // the same port's next address
    const bool alone = std::all_of(ports.begin(), ports.end(), [&](const RdmaPort& other) {
      return other.device != port->device || other.number == port->number;
    });
    // VIPL programs know only IPv4, and others rarely mean an interface that has only fe80::.
    const auto with_ipv4 = std::find_if(port, ports.end(), [&](const RdmaPort& other) {
      return is_same(other) && other.address.family() == AF_INET;
    });
    adapters.push_back({alone ? port->device : port->device + ":" + std::to_string(port->number),
                        port->device, (with_ipv4 != ports.end() ? with_ipv4 : port)->address,
                        port->number});
  }
  return adapters;
}

const RdmaAdapter* FindAdapter(const std::vector<RdmaAdapter>& adapters, const std::string& name,
                               int port) {
  const auto found = std::find_if(adapters.begin(), adapters.end(), [&](const RdmaAdapter& each) {
    if (each.device != name) return each.name == name;
    return port == 0 || each.port == port;
  });
  return found == adapters.end() ? nullptr : &*found;
}

}  // namespace viaduct::verbs
