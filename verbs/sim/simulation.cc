#include "verbs/sim/simulation.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "verbs/sim/sim_doorbell.h"
#include "verbs/sim/sim_wire.h"
#include "verbs/soft/context.h"

namespace viaduct::verbs {

Simulation::Simulation(const SimOptions& options) : network_(executor_, options) {}

Simulation::~Simulation() = default;

std::unique_ptr<Context> Simulation::NewNode() { return NewContext(network_.AddNode()); }

std::unique_ptr<Context> Simulation::OpenNode(const Address& address) {
  SimNode* const known = network_.Find(address);
  return NewContext(known != nullptr ? *known : network_.AddNode(address));
}

std::unique_ptr<Context> Simulation::NewContext(SimNode& node) {
  SoftContext::Options options;
  options.address = node.address;
  options.executor = &executor_;
  options.doorbell = std::make_unique<SimDoorbell>(executor_);
  options.wires.push_back(std::make_unique<SimWire>(network_, node));
  DeviceAttributes& attributes = options.attributes;
  attributes.device = "sim";
  attributes.transport = "sim";
  attributes.reason = "a simulation";
  attributes.max_queue_pairs = 65536;
  attributes.max_requests_per_queue = 16384;
  attributes.max_segments = 252;
  attributes.max_reads_in = 16;
  attributes.max_reads_out = 16;
  attributes.max_regions = 65536;
  attributes.max_region_bytes = uint64_t{1} << 47;
  attributes.max_message_bytes = uint32_t{1} << 30;
  attributes.max_private_data = 512;
  attributes.max_shared_queues = std::numeric_limits<uint32_t>::max();
  attributes.max_shared_receives = attributes.max_requests_per_queue;
  attributes.max_shared_segments = attributes.max_segments;
  attributes.listener_rest = network_.options().listener_rest;
  return std::make_unique<SoftContext>(std::move(options));
}

void Simulation::Kill(const Context& node) { network_.Kill(*network_.Find(node.address())); }

void Simulation::ResetConnections(const Context& a, const Context& b) {
  network_.Reset(*network_.Find(a.address()), *network_.Find(b.address()));
}

void Simulation::SetReachable(const Context& node, bool reachable) {
  network_.SetReachable(*network_.Find(node.address()), reachable);
}

}  // namespace viaduct::verbs
