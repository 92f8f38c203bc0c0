// Ends a TCP connection so that what was sent last is not lost.
#ifndef VIADUCT_VERBS_SOFT_IWARP_LINGER_H_
#define VIADUCT_VERBS_SOFT_IWARP_LINGER_H_

#include <cstddef>

#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {

// Sends FIN, throws away what still comes, and closes at the peer's FIN, or when the peer has taken
// nothing for `limit`: a close with unread input would send RST, as one before more input does, and
// RST throws away what the peer has not read yet, and what is still under way. Closes earlier where
// too many wait (ending.h). Returns at once. The socket must not be watched. Any thread.
void CloseLingering(EventLoop& loop, Socket socket, Nanos limit);

// How long CloseBehindPeer is to wait behind a reject.
inline constexpr Nanos kRejectLinger = kNanosPerSecond;

// The same, but sends no FIN before the peer's or the limit: siw (Linux 6.1) does not read a reject
// whose FIN it has seen. Where `most` sockets of the process wait so already, it is closed at once:
// strangers who are rejected must not hold all descriptors.
void CloseBehindPeer(EventLoop& loop, Socket socket, Nanos limit, size_t most);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_LINGER_H_
