// How processes of one host find each other: an abstract unix socket per listening port.
#ifndef VIADUCT_VERBS_SOFT_RENDEZVOUS_H_
#define VIADUCT_VERBS_SOFT_RENDEZVOUS_H_

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verbs/base/clock.h"
#include "verbs/base/fd.h"
#include "verbs/base/fd_table.h"
#include "verbs/soft/foreign_fd.h"

namespace viaduct::verbs {

// May this process use unix sockets? Without them, it and other processes cannot find each other.
bool MayRendezvous();

// Gives a socket of NewListener the name "\0<service>-<user>-<port>", which is local to the network
// namespace, like the TCP port, and listens on it. AlreadyExists: taken.
absl::Status ListenWith(int socket, absl::string_view service, uint16_t port);

// Non-blocking, close-on-exec, without a name. Invalid: errno tells why.
ListeningFd NewListener();

// Both steps. The Owner has the socket before the socket gets its name: a forked child that did not
// know of the socket would keep the name for as long as it lives.
template <typename Owner = ListeningFd>
absl::StatusOr<Owner> ListenAt(absl::string_view service, uint16_t port) {
  Owner owner = OpenAs<Owner>(&NewListener);
  if (!owner.valid()) return absl::ErrnoToStatus(errno, "a unix socket");
  if (absl::Status status = ListenWith(owner.get(), service, port); !status.ok()) return status;
  return owner;
}

// Accepts a connection to a listening socket, trusted or not. Invalid: errno tells why; unless that
// is IsNobody, the listener tries again later. The error is IsShortage also where too many
// descriptors wait for their close. Errors of accept other than IsNobody are logged once.
ChannelFd Accepted(int listener);

// The same for an Owner that forked children know.
template <typename Owner = ChannelFd>
Owner AcceptAt(int listener) {
  return OpenAs<Owner>([listener] { return Accepted(listener); });
}

// Connects a socket of NewChannel. NotFound: nobody listens there, or TrustedPeer refuses the
// process that does. Unavailable: so many wait to be accepted that there is no room, whoever
// listens there. ResourceExhausted: no memory.
absl::Status DialWith(int socket, absl::string_view service, uint16_t port, pid_t* pid);

// As NewListener.
ChannelFd NewChannel();

// Both steps. ResourceExhausted also if there is no descriptor, NotFound also if a filter has come
// to refuse unix sockets.
template <typename Owner = ChannelFd>
absl::StatusOr<Owner> DialTo(absl::string_view service, uint16_t port, pid_t* pid) {
  Owner owner = OpenAs<Owner>(&NewChannel);
  if (!owner.valid() && IsShortage(errno)) return absl::ResourceExhaustedError("no descriptor");
  if (!owner.valid()) return absl::NotFoundError("no unix sockets");
  if (absl::Status status = DialWith(owner.get(), service, port, pid); !status.ok()) return status;
  return owner;
}

// The same, to ask the process there something. NotFound also if there is no room: the listener may
// be another user's, who never accepts. A process of this user has much room, even if it is
// stopped.
template <typename Owner = ChannelFd>
absl::StatusOr<Owner> DialToAsk(absl::string_view service, uint16_t port) {
  pid_t pid;
  absl::StatusOr<Owner> owner = DialTo<Owner>(service, port, &pid);
  if (absl::IsUnavailable(owner.status())) return absl::NotFoundError(owner.status().message());
  return owner;
}

// Does a process of this user listen there, or anybody if there is no room for one more connection?
bool IsServedAt(absl::string_view service, uint16_t port);

// Waits until something can be read; false: `deadline` passed first. Not on the executor.
bool AwaitInput(int socket, Deadline deadline);

// The process at the other end of a connected socket (the one that listens, or that connected), if
// it runs as the same user and has a pid here; null otherwise. The overflow user never matches.
std::optional<pid_t> TrustedPeer(int socket);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_RENDEZVOUS_H_
