// Translates what the verbs and the connection manager report to the terms of verbs/device.h.
#ifndef VIADUCT_VERBS_RDMA_ERRORS_H_
#define VIADUCT_VERBS_RDMA_ERRORS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

// The status of a work completion.
Status CompletionStatus(ibv_wc_status status);
// The same for a receive, where drivers have their own codes for a message that is too long and for
// memory that is wrong: rxe reports the former as an invalid request, the latter as an operation
// error.
Status ReceiveStatus(ibv_wc_status status);

// What the numbers in the connection manager's events mean.
enum class Manager : uint8_t {
  kInfiniband,  // a reject has the reason of an InfiniBand reject
  kIwarp,       // errnos; of an adapter that does TCP and MPA itself
  kSiw,         // errnos; rdma_connect returns TCP's, events have MPA's
};

// The outcome of an attempt that ended with this event. `has_data`: private data came with it.
ConnectOutcome OutcomeOf(rdma_cm_event_type event, int status, Manager manager, bool has_data);
// An earlier connection is in the way, which an attempt with another id avoids. InfiniBand: the
// peer still has a connection of a pair with this number, whose owner has died unnoticed, and
// forgets it now. iWARP: a TCP connection has the source port, which rdma_cm chooses without asking
// TCP, the host's or the adapter's own.
bool IsStale(rdma_cm_event_type event, int status, Manager manager);
// The peer's program has rejected the request, or the kernel in its name. If this side already has
// a connection, the peer has ended its accept before it heard of that.
bool IsProgramsReject(rdma_cm_event_type event, int status, Manager manager);
// True if the event can only come after the peer's host has said something.
bool HeardWith(rdma_cm_event_type event, int status, Manager manager);
// The event is about a local interface or about a neighbour on the way (Linux 6.0 reports
// UNREACHABLE for a connection when the neighbour's address has changed). The peer has not said
// anything and does not know of it. UNREACHABLE also ends an attempt.
bool IsOfTheWay(rdma_cm_event_type event);
// rdma_connect or a resolution failed at once with this errno.
ConnectOutcome OutcomeOfErrno(int error);
// What has happened, and where to look for the cause; for the log.
absl::string_view Explanation(ConnectOutcome outcome);

// Logs the error of a call that makes something, named `what`, with what can be done about it.
void LogErrno(int error, absl::string_view what);
// The same; returns ResourceExhausted, PermissionDenied, AlreadyExists, NotFound or Unavailable.
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_ERRORS_H_
