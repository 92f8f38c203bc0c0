// Turns at a port that a program does not let its caller choose.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_PORT_TURN_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_PORT_TURN_H_

#include <cstdint>

namespace viaduct::tests {

// For as long as it lives, and its process, no other process of this network has a turn at that
// port. The constructor waits for that.
class PortTurn {
 public:
  explicit PortTurn(uint16_t port);
  ~PortTurn();
  PortTurn(const PortTurn&) = delete;
  PortTurn& operator=(const PortTurn&) = delete;

 private:
  int fd_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_PORT_TURN_H_
