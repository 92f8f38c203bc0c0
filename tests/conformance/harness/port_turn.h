// Turns at a port that a program does not let its caller choose.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_PORT_TURN_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_PORT_TURN_H_

#include <cstdint>

namespace viaduct::tests {

// As long as this object and its process live, no other process of this network gets a turn at that
// port. The constructor waits for the turn.
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
