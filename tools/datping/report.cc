#include "tools/datping/report.h"

#include <dat2/udat.h>

#include <nlohmann/json.hpp>

namespace viaduct::datping {
namespace {

// All connections together.
Result SumOf(const std::vector<Result>& results) {
  Result sum;
  for (const Result& result : results) sum.Add(result);
  return sum;
}

const char* WhatIsTimed(const Parameters& parameters) {
  if (parameters.test == Test::kConnect) return "a connection";
  return parameters.operation == Operation::kRead ? "a read" : "half a round trip";
}

}  // namespace

std::string TextReport(const Options& options, const std::vector<Result>& results) {
  const Parameters& parameters = options.parameters;
  const Result sum = SumOf(results);
  std::string out;
  ping::Print(&out, "%s to %s over %s, %u connection%s\n", NameOf(parameters.test),
              options.host.c_str(), options.device.c_str(), parameters.connections,
              parameters.connections == 1 ? "" : "s");
  if (parameters.test == Test::kConnect) {
    ping::Print(&out, "  %llu connections in %.3f s, %.0f connections/s\n",
                static_cast<unsigned long long>(sum.messages), sum.seconds(), sum.per_second());
    ping::PrintLatencies(WhatIsTimed(parameters), sum.latencies, options.histogram, &out);
    return out;
  }
  ping::Print(&out, "  %s of %u bytes, completions by %s, depth %u\n", NameOf(parameters.operation),
              parameters.bytes, NameOf(parameters.completion), parameters.depth);
  ping::PrintMessages(sum, &out);
  if (parameters.test == Test::kLatency) {
    ping::PrintLatencies(WhatIsTimed(parameters), sum.latencies, options.histogram, &out);
  } else {
    ping::PrintRate(sum, parameters.bytes, &out);
  }
  return out;
}

std::string JsonReport(const Options& options, const std::vector<Result>& results) {
  const Parameters& parameters = options.parameters;
  const Result sum = SumOf(results);
  nlohmann::ordered_json report;
  report["program"] = "datping " VIADUCT_VERSION;
  report["host"] = options.host;
  report["adapter"] = options.device;
  report["test"] = NameOf(parameters.test);
  report["operation"] = NameOf(parameters.operation);
  report["completion"] = NameOf(parameters.completion);
  report["bytes"] = parameters.bytes;
  report["depth"] = parameters.depth;
  report["connections"] = parameters.connections;
  ping::AddMessages(sum, &report);
  if (parameters.test == Test::kConnect) report["connections_per_second"] = sum.per_second();
  if (parameters.test == Test::kBandwidth) {
    ping::AddRate(sum, parameters.bytes, &report);
  } else {
    report["timed"] = WhatIsTimed(parameters);
    ping::AddLatencies("us", sum.latencies, options.histogram, &report);
  }
  return ping::Dump(report);
}

}  // namespace viaduct::datping
