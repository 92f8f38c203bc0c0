// Ends a TCP connection so that what was sent last is not lost.
#ifndef VIADUCT_VERBS_SOFT_IWARP_LINGER_H_
#define VIADUCT_VERBS_SOFT_IWARP_LINGER_H_

#include <cstddef>

#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {

// Sends FIN, discards what still arrives, and closes at the peer's FIN, or when the peer has taken
// nothing for `limit`. A close while input is unread or still to come would send RST, which
// discards what the peer has not read yet and what is in flight. Closes earlier if too many wait
// (ending.h). Returns at once. The socket must not be watched. Any thread.
void CloseLingering(EventLoop& loop, Socket socket, Nanos limit);

// The limit for CloseBehindPeer after a reject.
inline constexpr Nanos kRejectLinger = kNanosPerSecond;

// As CloseLingering, but no FIN before the peer's or the limit: siw (Linux 6.1) does not read a
// reject after it has seen the FIN. If `most` sockets of the process wait like this already, closes
// at once: rejected strangers must not hold all descriptors.
void CloseBehindPeer(EventLoop& loop, Socket socket, Nanos limit, size_t most);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_LINGER_H_
