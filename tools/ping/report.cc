#include "tools/ping/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace viaduct::ping {
namespace {

struct Percentile {
  const char* key;
  const char* name;
  double fraction;
};
constexpr Percentile kPercentiles[] = {
    {"p50", "p50", 0.5}, {"p90", "p90", 0.9}, {"p99", "p99", 0.99}, {"p99_9", "p99.9", 0.999}};

double Micros(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

double Mebibytes(const Result& result, uint32_t bytes) {
  return result.per_second() * static_cast<double>(bytes) / 1048576;
}

}  // namespace

void Result::Add(const Result& other) {
  messages += other.messages;
  nanoseconds = std::max(nanoseconds, other.nanoseconds);
  latencies.Add(other.latencies);
}

void Print(std::string* out, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  *out += text;
}

void PrintMessages(const Result& result, std::string* out) {
  Print(out, "  %llu messages in %.3f s\n", static_cast<unsigned long long>(result.messages),
        result.seconds());
}

void PrintRate(const Result& result, uint32_t bytes, std::string* out) {
  Print(out, "  %.1f MiB/s, %.0f messages/s\n", Mebibytes(result, bytes), result.per_second());
}

void PrintLatencies(const char* what, const Histogram& latencies, bool each, std::string* out) {
  Print(out, "  %s in us: min %.2f  mean %.2f", what, Micros(latencies.min()),
        latencies.mean() / 1000);
  for (const Percentile& p : kPercentiles) {
    Print(out, "  %s %.2f", p.name, Micros(latencies.Percentile(p.fraction)));
  }
  Print(out, "  max %.2f\n", Micros(latencies.max()));
  if (!each) return;
  constexpr uint64_t kWidth = 50;
  uint64_t most = 1;
  for (const Histogram::Bucket& bucket : latencies.Buckets()) most = std::max(most, bucket.count);
  for (const Histogram::Bucket& bucket : latencies.Buckets()) {
    Print(out, "  < %10.2f us %12llu  %s\n", Micros(bucket.below),
          static_cast<unsigned long long>(bucket.count),
          std::string(bucket.count * kWidth / most, '#').c_str());
  }
}

void AddMessages(const Result& result, nlohmann::ordered_json* report) {
  (*report)["messages"] = result.messages;
  (*report)["seconds"] = result.seconds();
}

void AddRate(const Result& result, uint32_t bytes, nlohmann::ordered_json* report) {
  (*report)["messages_per_second"] = result.per_second();
  (*report)["mebibytes_per_second"] = Mebibytes(result, bytes);
}

void AddLatencies(const char* what, const Histogram& latencies, bool each,
                  nlohmann::ordered_json* report) {
  nlohmann::ordered_json micros;
  micros["min"] = Micros(latencies.min());
  micros["mean"] = latencies.mean() / 1000;
  for (const Percentile& p : kPercentiles) {
    micros[p.key] = Micros(latencies.Percentile(p.fraction));
  }
  micros["max"] = Micros(latencies.max());
  (*report)[what] = micros;
  if (!each) return;
  nlohmann::ordered_json buckets = nlohmann::ordered_json::array();
  for (const Histogram::Bucket& bucket : latencies.Buckets()) {
    buckets.push_back({{"below_us", Micros(bucket.below)}, {"count", bucket.count}});
  }
  (*report)["histogram"] = buckets;
}

std::string Dump(const nlohmann::ordered_json& report) {
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace viaduct::ping
