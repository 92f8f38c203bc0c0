// The counters of dat2/dat_ib_extensions.h, of adapters, endpoints and dispatchers. Parameter
// numbers are those of its macros.
#ifndef VIADUCT_DAT_API_COUNTERS_H_
#define VIADUCT_DAT_API_COUNTERS_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// One counter into *out, or, with the number behind the last one, all of them.
DAT_RETURN QueryCounters(DAT_HANDLE handle, int counter, DAT_UINT64* out, bool reset);
// To standard output, a line each; of all of them those that are not 0.
DAT_RETURN PrintCounters(DAT_HANDLE handle, int counter, bool reset);
// DAT_IA_COUNTER_TYPE of an adapter. Connections are counted from its opening on; there are no
// counters of a link and no diagnostics, MODEL_NOT_SUPPORTED.
DAT_RETURN RunCounters(DAT_HANDLE handle, int group, bool start);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_COUNTERS_H_
