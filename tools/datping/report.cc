#include "tools/datping/report.h"

#include <dat2/udat.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace viaduct::datping {
namespace {

using ping::Histogram;

constexpr double kMebibyte = 1048576;

struct Percentile {
  const char* name;
  double fraction;
};
constexpr Percentile kPercentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}};

double Micros(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

// All connections together: they began at one time.
struct Sum {
  uint64_t messages = 0;
  double seconds = 0;  // of the longest
  Histogram latencies;
  double rate() const { return static_cast<double>(messages) / seconds; }
};

Sum SumOf(const std::vector<Result>& results) {
  Sum sum;
  for (const Result& result : results) {
    sum.messages += result.messages;
    sum.seconds = std::max(sum.seconds, static_cast<double>(result.nanoseconds) / 1e9);
    sum.latencies.Add(result.latencies);
  }
  return sum;
}

const char* WhatIsTimed(const Parameters& parameters) {
  if (parameters.test == Test::kConnect) return "a connection";
  return parameters.operation == Operation::kRead ? "a read" : "half a round trip";
}

template <typename... Values>
void Print(std::string* out, const char* format, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  *out += line;
}

void PrintLatencies(const Options& options, const Histogram& latencies, std::string* out) {
  Print(out, "  %s in us: min %.2f  mean %.2f", WhatIsTimed(options.parameters),
        Micros(latencies.min()), latencies.mean() / 1000);
  for (const Percentile& p : kPercentiles) {
    std::string name = p.name;
    std::replace(name.begin(), name.end(), '_', '.');
    Print(out, "  %s %.2f", name.c_str(), Micros(latencies.Percentile(p.fraction)));
  }
  Print(out, "  max %.2f\n", Micros(latencies.max()));
  if (!options.histogram) return;
  constexpr uint64_t kWidth = 50;
  uint64_t most = 1;
  for (const Histogram::Bucket& bucket : latencies.Buckets()) most = std::max(most, bucket.count);
  for (const Histogram::Bucket& bucket : latencies.Buckets()) {
    Print(out, "  < %10.2f us %12llu  %s\n", Micros(bucket.below),
          static_cast<unsigned long long>(bucket.count),
          std::string(bucket.count * kWidth / most, '#').c_str());
  }
}

}  // namespace

std::string TextReport(const Options& options, const std::vector<Result>& results) {
  const Parameters& parameters = options.parameters;
  const Sum sum = SumOf(results);
  std::string out;
  Print(&out, "%s to %s over %s, %u connection%s\n", NameOf(parameters.test), options.host.c_str(),
        options.adapter.c_str(), parameters.connections, parameters.connections == 1 ? "" : "s");
  if (parameters.test == Test::kConnect) {
    Print(&out, "  %llu connections in %.3f s, %.0f connections/s\n",
          static_cast<unsigned long long>(sum.messages), sum.seconds, sum.rate());
    PrintLatencies(options, sum.latencies, &out);
    return out;
  }
  Print(&out, "  %s of %u bytes, completions by %s, depth %u\n", NameOf(parameters.operation),
        parameters.bytes, NameOf(parameters.completion), parameters.depth);
  Print(&out, "  %llu messages in %.3f s\n", static_cast<unsigned long long>(sum.messages),
        sum.seconds);
  if (parameters.test == Test::kLatency) {
    PrintLatencies(options, sum.latencies, &out);
  } else {
    Print(&out, "  %.1f MiB/s, %.0f messages/s\n",
          sum.rate() * static_cast<double>(parameters.bytes) / kMebibyte, sum.rate());
  }
  return out;
}

std::string JsonReport(const Options& options, const std::vector<Result>& results) {
  const Parameters& parameters = options.parameters;
  const Sum sum = SumOf(results);
  nlohmann::ordered_json report;
  report["program"] = "datping " VIADUCT_VERSION;
  report["host"] = options.host;
  report["adapter"] = options.adapter;
  report["test"] = NameOf(parameters.test);
  report["operation"] = NameOf(parameters.operation);
  report["completion"] = NameOf(parameters.completion);
  report["bytes"] = parameters.bytes;
  report["depth"] = parameters.depth;
  report["connections"] = parameters.connections;
  report["messages"] = sum.messages;
  report["seconds"] = sum.seconds;
  if (parameters.test == Test::kConnect) report["connections_per_second"] = sum.rate();
  if (parameters.test == Test::kBandwidth) {
    report["messages_per_second"] = sum.rate();
    report["mebibytes_per_second"] = sum.rate() * static_cast<double>(parameters.bytes) / kMebibyte;
    return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  const Histogram& latencies = sum.latencies;
  report["timed"] = WhatIsTimed(parameters);
  nlohmann::ordered_json& micros = report["us"];
  micros["min"] = Micros(latencies.min());
  micros["mean"] = latencies.mean() / 1000;
  for (const Percentile& p : kPercentiles) {
    micros[p.name] = Micros(latencies.Percentile(p.fraction));
  }
  micros["max"] = Micros(latencies.max());
  if (options.histogram) {
    nlohmann::ordered_json& buckets = report["histogram"] = nlohmann::ordered_json::array();
    for (const Histogram::Bucket& bucket : latencies.Buckets()) {
      buckets.push_back({{"below_us", Micros(bucket.below)}, {"count", bucket.count}});
    }
  }
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::datping
