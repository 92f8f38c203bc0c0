// What the exit of a process does to its TCP connections: their peers see a disconnect after
// everything that was sent.
#ifndef VIADUCT_VERBS_SOFT_IWARP_EXIT_H_
#define VIADUCT_VERBS_SOFT_IWARP_EXIT_H_

#include "verbs/base/event_loop.h"

namespace viaduct::verbs::iwarp {

// When the process exits, this sends what waits for room in TCP, shuts all sockets down for
// sending, and waits until the peers' TCP has everything, for at most half a second altogether.
// Otherwise the kernel resets a connection whose peer sends to a process that is gone, or has sent
// what nobody read, and discards what is still in flight. Needed once per loop. Any thread.
void EndConnectionsAtExit(EventLoop& loop);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_EXIT_H_
