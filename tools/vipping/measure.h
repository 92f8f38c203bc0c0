// The two roles: a server that answers whatever client comes, and a client that measures.
#ifndef VIADUCT_TOOLS_VIPPING_MEASURE_H_
#define VIADUCT_TOOLS_VIPPING_MEASURE_H_

#include "tools/ping/report.h"
#include "tools/vipping/end.h"
#include "tools/vipping/options.h"

namespace viaduct::vipping {

using ping::Result;

// Answers one client after the other; returns after the first with --once.
void Serve(const Nic& nic, const Options& options);

Result Measure(const Nic& nic, const Options& options);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_MEASURE_H_
