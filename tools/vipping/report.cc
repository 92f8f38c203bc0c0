#include "tools/vipping/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace viaduct::vipping {
namespace {

using ping::Histogram;

constexpr double kMebibyte = 1048576;

struct Percentile {
  const char* name;
  double fraction;
};
constexpr Percentile kPercentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}};

double Micros(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }
double Seconds(const Result& result) { return static_cast<double>(result.nanoseconds) / 1e9; }
double Rate(const Result& result) { return static_cast<double>(result.messages) / Seconds(result); }

template <typename... Values>
void Print(std::string* out, const char* format, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  *out += line;
}

void PrintLatencies(const Options& options, const Histogram& latencies, std::string* out) {
  Print(out, "  half a round trip in us: min %.2f  mean %.2f", Micros(latencies.min()),
        latencies.mean() / 1000);
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

std::string TextReport(const Options& options, const VIADUCT_DEVICE_INFO& device,
                       const Result& result) {
  const Parameters& parameters = options.parameters;
  std::string out;
  Print(&out, "%s to %s over %s (%s: %s)\n", NameOf(parameters.test), options.host.c_str(),
        options.nic.c_str(), device.Device, device.Reason);
  Print(&out, "  %s of %u bytes, %s, completions by %s, depth %u\n", NameOf(parameters.operation),
        parameters.bytes, NameOfLevel(options.level), NameOf(parameters.completion),
        parameters.depth);
  Print(&out, "  %llu messages in %.3f s\n", static_cast<unsigned long long>(result.messages),
        Seconds(result));
  if (parameters.test == Test::kLatency) {
    PrintLatencies(options, result.latencies, &out);
  } else {
    Print(&out, "  %.1f MiB/s, %.0f messages/s\n",
          Rate(result) * static_cast<double>(parameters.bytes) / kMebibyte, Rate(result));
  }
  return out;
}

std::string JsonReport(const Options& options, const VIADUCT_DEVICE_INFO& device,
                       const Result& result) {
  const Parameters& parameters = options.parameters;
  nlohmann::ordered_json report;
  report["program"] = "vipping " VIADUCT_VERSION;
  report["host"] = options.host;
  report["nic"] = options.nic;
  report["device"] = device.Device;
  report["reason"] = device.Reason;
  report["test"] = NameOf(parameters.test);
  report["operation"] = NameOf(parameters.operation);
  report["completion"] = NameOf(parameters.completion);
  report["reliability"] = NameOfLevel(options.level);
  report["bytes"] = parameters.bytes;
  report["depth"] = parameters.depth;
  report["messages"] = result.messages;
  report["seconds"] = Seconds(result);
  if (parameters.test == Test::kBandwidth) {
    report["messages_per_second"] = Rate(result);
    report["mebibytes_per_second"] =
        Rate(result) * static_cast<double>(parameters.bytes) / kMebibyte;
  } else {
    const Histogram& latencies = result.latencies;
    nlohmann::ordered_json& micros = report["half_round_trip_us"];
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
  }
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::vipping
