// What the exit of a process does to its TCP connections: their peers see a disconnect behind
// everything that was sent.
#ifndef VIADUCT_VERBS_SOFT_IWARP_EXIT_H_
#define VIADUCT_VERBS_SOFT_IWARP_EXIT_H_

#include "verbs/base/event_loop.h"

namespace viaduct::verbs::iwarp {

// When the process exits, what waits for room in TCP goes out, the sending halves of all sockets
// are shut down, and the exit waits until the peers' TCP has it all: the kernel answers what a peer
// says to a process that is gone, or said and nobody read, with a reset, and throws away what is
// still on its way. For half a second at most, all together. Once for a loop, any thread.
void EndConnectionsAtExit(EventLoop& loop);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_EXIT_H_
