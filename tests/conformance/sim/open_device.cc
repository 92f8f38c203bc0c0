// verbs/open_device.h over a simulation: every address of this host is a node of one network.
#include "verbs/open_device.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/conformance/sim/clock.h"
#include "verbs/base/interfaces.h"
#include "verbs/sim/simulation.h"

namespace viaduct::verbs {
namespace {

// Never destroyed: adapters may be open in exit().
Simulation& TheSimulation() {
  static Simulation* const simulation = new Simulation;
  return *simulation;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> OpenDevice(const Address& address,
                                                    const std::string& name) {
  const std::optional<Interfaces> interfaces = ListInterfaces();
  if (!interfaces) return absl::ResourceExhaustedError("to ask for the interfaces");
  if (std::none_of(interfaces->begin(), interfaces->end(),
                   [&](const Interface& interface) { return interface.address == address; })) {
    return absl::NotFoundError(absl::StrCat("nobody here is ", address.ToString()));
  }
  if (name != kAnyDevice) {
    return absl::NotFoundError(absl::StrCat("there is no device ", name, " in the simulation"));
  }
  return TheSimulation().OpenNode(address);
}

std::vector<RdmaPort> ListRdmaPorts() { return {}; }

std::vector<RdmaAdapter> ListRdmaAdapters() { return {}; }

bool NamesRdmaDevice(const std::string&) { return false; }

}  // namespace viaduct::verbs

int64_t viaduct_simulation_now() { return viaduct::verbs::TheSimulation().executor().Now(); }

void viaduct_simulation_pass(int64_t nanoseconds) {
  viaduct::verbs::SimExecutor& executor = viaduct::verbs::TheSimulation().executor();
  executor.RunUntil([] { return false; }, viaduct::verbs::Deadline::After(executor, nanoseconds));
}
