// The two roles: a server that answers whatever client comes, and a client that measures.
#ifndef VIADUCT_TOOLS_VIPPING_MEASURE_H_
#define VIADUCT_TOOLS_VIPPING_MEASURE_H_

#include <cstdint>

#include "tools/ping/histogram.h"
#include "tools/vipping/end.h"
#include "tools/vipping/options.h"

namespace viaduct::vipping {

struct Result {
  uint64_t messages = 0;
  uint64_t nanoseconds = 0;   // of the whole
  ping::Histogram latencies;  // half round trips
};

// Answers one client after the other; returns after the first with --once.
void Serve(const Nic& nic, const Options& options);

Result Measure(const Nic& nic, const Options& options);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_MEASURE_H_
