#include "tools/vipping/report.h"

#include <nlohmann/json.hpp>

namespace viaduct::vipping {

std::string TextReport(const Options& options, const VIADUCT_DEVICE_INFO& device,
                       const Result& result) {
  const Parameters& parameters = options.parameters;
  std::string out;
  ping::Print(&out, "%s to %s over %s (%s: %s)\n", NameOf(parameters.test), options.host.c_str(),
              options.device.c_str(), device.Device, device.Reason);
  ping::Print(&out, "  %s of %u bytes, %s, completions by %s, depth %u\n",
              NameOf(parameters.operation), parameters.bytes, NameOfLevel(options.level),
              NameOf(parameters.completion), parameters.depth);
  ping::PrintMessages(result, &out);
  if (parameters.test == Test::kLatency) {
    ping::PrintLatencies("half a round trip", result.latencies, options.histogram, &out);
  } else {
    ping::PrintRate(result, parameters.bytes, &out);
  }
  return out;
}

std::string JsonReport(const Options& options, const VIADUCT_DEVICE_INFO& device,
                       const Result& result) {
  const Parameters& parameters = options.parameters;
  nlohmann::ordered_json report;
  report["program"] = "vipping " VIADUCT_VERSION;
  report["host"] = options.host;
  report["nic"] = options.device;
  report["device"] = device.Device;
  report["reason"] = device.Reason;
  report["test"] = NameOf(parameters.test);
  report["operation"] = NameOf(parameters.operation);
  report["completion"] = NameOf(parameters.completion);
  report["reliability"] = NameOfLevel(options.level);
  report["bytes"] = parameters.bytes;
  report["depth"] = parameters.depth;
  ping::AddMessages(result, &report);
  if (parameters.test == Test::kBandwidth) {
    ping::AddRate(result, parameters.bytes, &report);
  } else {
    ping::AddLatencies("half_round_trip_us", result.latencies, options.histogram, &report);
  }
  return ping::Dump(report);
}

}  // namespace viaduct::vipping
