// TCP sockets as this wire wants them: non-blocking, close-on-exec, with high descriptor numbers
// (out of select's way).
#ifndef VIADUCT_VERBS_SOFT_IWARP_TCP_H_
#define VIADUCT_VERBS_SOFT_IWARP_TCP_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {

// Returns an invalid socket, with errno set, if none can be had.
Socket NewTcpSocket(sa_family_t family);

// A socket that listens on exactly this address and port (0: a free one). AlreadyExists: taken;
// PermissionDenied; InvalidArgument: not an address of this host; ResourceExhausted. All are
// logged.
absl::StatusOr<Socket> ListenOn(const Address& address, uint16_t port);

// The address of a socket, or of its peer; unspecified and 0 if it has none any more.
struct SocketName {
  Address address;
  uint16_t port = 0;
};
SocketName LocalEnd(int fd);
SocketName PeerEnd(int fd);

// For every connection: no delay, and an idle peer that is gone is noticed within about `silence`.
// A peer that owes an acknowledgement is watched by the link (UnacknowledgedOf), because
// TCP_USER_TIMEOUT would also end a connection whose living peer merely holds its window closed.
void SetConnectionOptions(int fd, Nanos silence);

// For an established connection: makes TCP ask a silent peer again, for an acknowledgement or for
// room, at least every quarter of `silence`, instead of doubling the interval each time. False:
// this kernel has no such option (before Linux 6.15).
bool LimitBackOff(int fd, Nanos silence);

// Bytes of a full TCP segment toward the peer.
size_t SegmentSize(int fd);

// How many bytes the peer has not acknowledged, unsent ones included. A FIN counts as one.
size_t UnacknowledgedBytes(int fd);

// What became of the bytes that were sent.
struct Unacknowledged {
  bool outstanding = false;  // some are not acknowledged, or not even sent
  bool answer_due = false;   // the peer owes an answer; a living peer that keeps its window closed
                             // answers TCP's probes, which become rarer and rarer
  Nanos silent_for = 0;      // since its last acknowledgement
};
Unacknowledged UnacknowledgedOf(int fd);

// Reads up to 16 KiB of what has come, and forgets it. Returns what the last recv returned.
ssize_t DiscardInput(int fd);

// Whether an error of connect() or of the socket means that there is no route to the peer, as
// opposed to an answer of the peer.
bool IsUnreachable(int error);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TCP_H_
