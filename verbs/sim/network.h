// The simulated network: nodes, delays, faults, and a record of what was delivered.
//
// Packets between two ends of a connection keep their order; the delay of each is drawn from the
// seed. Only the thread of the simulation enters.
#ifndef VIADUCT_VERBS_SIM_NETWORK_H_
#define VIADUCT_VERBS_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/device.h"
#include "verbs/sim/sim_executor.h"

namespace viaduct::verbs {

class SimConnection;

struct SimOptions {
  uint64_t seed = 1;
  Nanos min_delay = 1'000;
  Nanos max_delay = 50'000;
  // How many messages may be in flight or unconsumed in one direction of a connection.
  uint32_t window = 32;
  Nanos listener_rest = 0;  // DeviceAttributes
};

// One process of the simulation.
struct SimNode {
  int number = 0;
  Address address;
  bool alive = true;
  bool reachable = true;
  std::map<uint16_t, ListenerSink*> listeners;
  uint16_t last_port = 40000;  // of outgoing connections
};

// Carries the packets of one direction in order.
struct SimLane {
  SimNode* from = nullptr;
  SimNode* to = nullptr;
  Nanos last_arrival = 0;
};

class Network {
 public:
  Network(SimExecutor& executor, const SimOptions& options);

  SimExecutor& executor() { return executor_; }
  const SimOptions& options() const { return options_; }
  // At 10.0.0.1, 10.0.0.2, and so on, or at an address that no node has.
  SimNode& AddNode();
  SimNode& AddNode(const Address& address);
  SimNode* Find(const Address& address);  // null: no such host

  // Calls `deliver` after a delay, and after everything sent on `lane` before. The packet is
  // dropped if the sender is dead now or the receiver is dead then; it is kept back while either is
  // unreachable.
  void Send(SimLane& lane, absl::string_view what, size_t bytes, std::function<void()> deliver);
  // For events without a peer: calls `event` after a delay.
  void Later(std::function<void()> event);

  void Add(std::shared_ptr<SimConnection> connection);
  void Remove(SimConnection* connection);

  // The node's process is gone: its peers are notified, new connections to it are refused.
  void Kill(SimNode& node);
  // All connections between the two break; packets in flight are lost.
  void Reset(SimNode& a, SimNode& b);
  // Packets from and to the node wait until it is reachable again.
  void SetReachable(SimNode& node, bool reachable);

  // "time from>to what bytes" of each delivery so far.
  const std::vector<std::string>& trace() const { return trace_; }

 private:
  struct Packet {
    SimNode* from;
    SimNode* to;
    std::string what;
    std::function<void()> deliver;
  };
  Nanos Delay();
  void Arrive(std::shared_ptr<Packet> packet);

  SimExecutor& executor_;
  const SimOptions options_;
  uint64_t random_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::shared_ptr<SimConnection>> connections_;
  std::vector<std::shared_ptr<Packet>> kept_back_;
  std::vector<std::string> trace_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SIM_NETWORK_H_
