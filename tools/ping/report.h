// The results of a measurement, as text and as JSON: the lines and keys that both programs have.
#ifndef VIADUCT_TOOLS_PING_REPORT_H_
#define VIADUCT_TOOLS_PING_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/ping/histogram.h"

namespace viaduct::ping {

struct Result {
  uint64_t messages = 0;
  uint64_t nanoseconds = 0;  // of the whole
  Histogram latencies;       // empty where a stream was measured

  // Adds a result that began at the same time.
  void Add(const Result& other);
  double seconds() const { return static_cast<double>(nanoseconds) / 1e9; }
  double per_second() const { return static_cast<double>(messages) / seconds(); }
};

// Appends like printf, up to 511 characters.
void Print(std::string* out, const char* format, ...) __attribute__((format(printf, 2, 3)));

// ---- lines of text
// How many messages and how long.
void PrintMessages(const Result& result, std::string* out);
// How fast messages of so many bytes went.
void PrintRate(const Result& result, uint32_t bytes, std::string* out);
// How long `what` took; with `each`, a line for each bucket too.
void PrintLatencies(const char* what, const Histogram& latencies, bool each, std::string* out);

// ---- the same in JSON
void AddMessages(const Result& result, nlohmann::ordered_json* report);
void AddRate(const Result& result, uint32_t bytes, nlohmann::ordered_json* report);
// Under the key `what`; the buckets under "histogram".
void AddLatencies(const char* what, const Histogram& latencies, bool each,
                  nlohmann::ordered_json* report);
// The text of the report. A name that is not UTF-8 does no harm.
std::string Dump(const nlohmann::ordered_json& report);

}  // namespace viaduct::ping

#endif  // VIADUCT_TOOLS_PING_REPORT_H_
