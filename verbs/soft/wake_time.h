// How long a sleeping thread of this machine takes to run again.
#ifndef VIADUCT_VERBS_SOFT_WAKE_TIME_H_
#define VIADUCT_VERBS_SOFT_WAKE_TIME_H_

#include "verbs/base/clock.h"

namespace viaduct::verbs {

// Measured at the first call, with a thread of its own that is gone when it returns: the median of
// a few futex wake-ups, within 5..100 microseconds. Any thread.
Nanos WakeTime(const Clock& clock);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_WAKE_TIME_H_
