// What a fork does to the wire: its connections and what it keeps of them are the parent's.
#ifndef VIADUCT_VERBS_SOFT_IWARP_FORK_H_
#define VIADUCT_VERBS_SOFT_IWARP_FORK_H_

#include "verbs/base/event_loop.h"

namespace viaduct::verbs::iwarp {

// From now on a forked child closes its copies of all sockets, and begins without connections that
// end. Idempotent, any thread.
void BeginAnewInForkChildren(EventLoop& loop);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_FORK_H_
