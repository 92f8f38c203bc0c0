// The counters of dat2/dat_ib_extensions.h by name, in their order.
#ifndef VIADUCT_DAT_API_COUNTER_NAMES_H_
#define VIADUCT_DAT_API_COUNTER_NAMES_H_

#include "absl/types/span.h"

namespace viaduct::dat {

absl::Span<const char* const> AdapterCounterNames();     // DAT_IA_COUNTERS
absl::Span<const char* const> EndpointCounterNames();    // DAT_EP_COUNTERS
absl::Span<const char* const> DispatcherCounterNames();  // DAT_EVD_COUNTERS

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_COUNTER_NAMES_H_
