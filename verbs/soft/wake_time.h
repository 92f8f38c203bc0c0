// How long a sleeping thread of this machine takes to run again.
#ifndef VIADUCT_VERBS_SOFT_WAKE_TIME_H_
#define VIADUCT_VERBS_SOFT_WAKE_TIME_H_

#include "verbs/base/clock.h"

namespace viaduct::verbs {

// The median of a few futex wake-ups, clamped to 5..100 microseconds. Measured at the first call,
// with a temporary thread that is gone when the call returns. Any thread.
Nanos WakeTime(const Clock& clock);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_WAKE_TIME_H_
