// The counters of dat2/dat_ib_extensions.h, of adapters, endpoints and dispatchers. Parameter
// numbers are those of that header's macros.
#ifndef VIADUCT_DAT_API_COUNTERS_H_
#define VIADUCT_DAT_API_COUNTERS_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// Stores one counter in *out or, if `counter` is the number after the last one, all of them.
DAT_RETURN QueryCounters(DAT_HANDLE handle, int counter, DAT_UINT64* out, bool reset);
// Prints one line per counter to standard output; if all are asked for, only those that are not 0.
DAT_RETURN PrintCounters(DAT_HANDLE handle, int counter, bool reset);
// Starts or stops a group (DAT_IA_COUNTER_TYPE) of an adapter's counters. Connections are counted
// from the opening of the adapter on. Link and diagnostic counters do not exist:
// MODEL_NOT_SUPPORTED.
DAT_RETURN RunCounters(DAT_HANDLE handle, int group, bool start);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_COUNTERS_H_
