// VIPL's milliseconds into deadlines.
#ifndef VIADUCT_COMPAT_TIME_H_
#define VIADUCT_COMPAT_TIME_H_

#include <vipl.h>

#include <cstdint>
#include <limits>

#include "verbs/base/clock.h"

namespace viaduct::compat {

// VIP_INFINITE is all ones of a VIP_ULONG; programs written when that had 32 bits pass 0xFFFFFFFF.
inline bool IsInfinite(VIP_ULONG milliseconds) {
  return milliseconds == VIP_INFINITE || milliseconds == 0xFFFFFFFFul;
}

// Computed once for each call, when it begins: a wait that goes on never restarts its time-out.
inline verbs::Deadline DeadlineAfter(const verbs::Clock& clock, VIP_ULONG milliseconds) {
  if (IsInfinite(milliseconds) ||
      uint64_t{milliseconds} >
          uint64_t{std::numeric_limits<verbs::Nanos>::max()} / uint64_t{verbs::kNanosPerMilli}) {
    return verbs::Deadline::Infinite();
  }
  return verbs::Deadline::After(clock,
                                static_cast<verbs::Nanos>(milliseconds) * verbs::kNanosPerMilli);
}

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_TIME_H_
