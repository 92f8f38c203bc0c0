// The two roles: a server that answers whatever clients come, and a client that measures.
#ifndef VIADUCT_TOOLS_DATPING_MEASURE_H_
#define VIADUCT_TOOLS_DATPING_MEASURE_H_

#include <vector>

#include "tools/datping/end.h"
#include "tools/datping/options.h"
#include "tools/ping/report.h"

namespace viaduct::datping {

using ping::Result;

// Answers each connection in a thread of its own; with --once it returns when a client has come
// and no connection is left.
void Serve(const Adapter& adapter, const Options& options);

// A result for each connection: half round trips, reads, or connections. All measurements begin
// together, when the last connection is there.
std::vector<Result> Measure(const Adapter& adapter, const Options& options);

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_MEASURE_H_
