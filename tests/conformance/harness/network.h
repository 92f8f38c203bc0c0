// A network for one test binary, so that several binaries can run at the same time.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_NETWORK_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_NETWORK_H_

#include <cstdint>

namespace viaduct::tests {

inline constexpr int kPortsPerRun = 200;

struct Network {
  bool own = false;  // a namespace with only the loopback interface
  // Below the ephemeral ports, because a connection that has ended may still hold one of those.
  uint16_t first_port = 15000;
};

// Moves this process into a network namespace of its own, unless it needs the host's, where RDMA
// devices are. If it stays in the host's network, it reserves kPortsPerRun ports against other runs
// of this harness, until the process ends.
Network EnterNetwork(bool needs_hosts);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_NETWORK_H_
