// How processes find each other: an abstract unix socket per listening port.
#ifndef VIADUCT_VERBS_SOFT_SHM_RENDEZVOUS_H_
#define VIADUCT_VERBS_SOFT_SHM_RENDEZVOUS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs::shm {

// "\0viaduct-<user>-<port>", in the network namespace, as the TCP port is. Non-blocking,
// close-on-exec. AlreadyExists: taken.
absl::StatusOr<Fd> ListenAt(uint16_t port);

// NotFound: nobody listens there, or somebody whom TrustedPeer refuses. ResourceExhausted: no
// descriptor.
absl::StatusOr<Fd> DialTo(uint16_t port, pid_t* pid);

// The process at the other end of a connected socket (the one that listens, or that connected), if
// it runs as the same user and can be named here; null otherwise. The overflow user never matches.
std::optional<pid_t> TrustedPeer(int socket);

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_RENDEZVOUS_H_
