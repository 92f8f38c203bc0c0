// The soft device's wire through a simulated network.
#ifndef VIADUCT_VERBS_SIM_SIM_WIRE_H_
#define VIADUCT_VERBS_SIM_SIM_WIRE_H_

#include <memory>

#include "verbs/sim/network.h"
#include "verbs/soft/wire.h"

namespace viaduct::verbs {

class SimWire final : public Wire {
 public:
  SimWire(Network& network, SimNode& node) : network_(network), node_(node) {}

  absl::string_view name() const override { return "sim"; }
  bool Reaches(const Address&) const override { return true; }
  Link* Connect(SoftQueuePair& pair, const ConnectOptions& options) override;
  absl::StatusOr<std::unique_ptr<WireListener>> Listen(SoftContext& context, uint16_t port,
                                                       ListenerSink* sink) override;
  bool IsServed(uint16_t port) const override { return node_.listeners.contains(port); }

 private:
  Network& network_;
  SimNode& node_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SIM_SIM_WIRE_H_
