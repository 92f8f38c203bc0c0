// A wait during which the process stood still.
#ifndef VIADUCT_DAT_CORE_CATCH_UP_H_
#define VIADUCT_DAT_CORE_CATCH_UP_H_

#include "verbs/base/clock.h"
#include "verbs/base/executor.h"

namespace viaduct::core {

// To be called when a wait has timed out, without locks. True: so long ago that the process, or the
// thread, has stood still, and what came in time may have lain in a socket; the executor has looked
// there now, and the caller looks once more.
bool CatchUp(verbs::Executor& executor, verbs::Deadline deadline);

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CATCH_UP_H_
