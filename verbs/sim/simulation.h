// Many nodes in one process and one thread: the soft device over a network that does what the test
// orders. The engine cannot tell the difference; the same seed repeats a run.
#ifndef VIADUCT_VERBS_SIM_SIMULATION_H_
#define VIADUCT_VERBS_SIM_SIMULATION_H_

#include <memory>
#include <string>
#include <vector>

#include "verbs/device.h"
#include "verbs/sim/network.h"
#include "verbs/sim/sim_executor.h"

namespace viaduct::verbs {

// Contexts are destroyed before the simulation, whose end drops what is still in flight.
class Simulation {
 public:
  explicit Simulation(const SimOptions& options = {});
  ~Simulation();

  SimExecutor& executor() { return executor_; }
  // A new process on a host of its own: 10.0.0.1, 10.0.0.2, and so on.
  std::unique_ptr<Context> NewNode();
  // The process at `address`: a new one, or one whose previous context has been destroyed.
  std::unique_ptr<Context> OpenNode(const Address& address);

  // Faults; see Network. A node is named by its context.
  void Kill(const Context& node);
  void ResetConnections(const Context& a, const Context& b);
  void SetReachable(const Context& node, bool reachable);

  const std::vector<std::string>& trace() const { return network_.trace(); }

 private:
  std::unique_ptr<Context> NewContext(SimNode& node);

  SimExecutor executor_;
  Network network_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SIM_SIMULATION_H_
