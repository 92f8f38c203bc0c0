// What the verbs and the connection manager say, in the words of verbs/device.h.
#ifndef VIADUCT_VERBS_RDMA_ERRORS_H_
#define VIADUCT_VERBS_RDMA_ERRORS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

// Of a work completion.
Status CompletionStatus(ibv_wc_status status);
// The same of a receive, where drivers have names of their own for a message that is too long and
// for memory that is wrong: rxe calls the one an invalid request, and the other an operation.
Status ReceiveStatus(ibv_wc_status status);

// Whose numbers the connection manager's events have.
enum class Manager : uint8_t {
  kInfiniband,  // a reject has the reason of an InfiniBand reject
  kIwarp,       // errnos; of an adapter that does TCP and MPA itself
  kSiw,         // errnos; TCP's are those of rdma_connect, the events' are MPA's
};

// An attempt that ended with this event. `has_data`: private data came along.
ConnectOutcome OutcomeOf(rdma_cm_event_type event, int status, Manager manager, bool has_data);
// An earlier connection is in the way, and with another id there is none. InfiniBand: the peer
// still has one of the pair with this number, whose owner has died unheard, and forgets it now.
// iWARP: one of TCP has the source port, which rdma_cm chooses without asking TCP.
bool IsStale(rdma_cm_event_type event, int status, Manager manager);
// The peer's program has said no, or the kernel in its name. To whom a connection is one already:
// the peer has ended its accept before it heard of that.
bool IsProgramsReject(rdma_cm_event_type event, int status, Manager manager);
// True if the event can only come after the peer's host has said something.
bool HeardWith(rdma_cm_event_type event, int status, Manager manager);
// It is about an interface here, or about a neighbour on the way (Linux 6.0 tells UNREACHABLE of a
// connection when that has another address than before): the peer has not said anything, and does
// not know of it. UNREACHABLE is also the end of an attempt.
bool IsOfTheWay(rdma_cm_event_type event);
// rdma_connect or a resolution failed at once with this errno.
ConnectOutcome OutcomeOfErrno(int error);
// What has happened, and where to look: for the log.
absl::string_view Explanation(ConnectOutcome outcome);

// An error of a call that makes something, `what` in the log with what can be done about it.
void LogErrno(int error, absl::string_view what);
// The same, as ResourceExhausted, PermissionDenied, AlreadyExists, NotFound or Unavailable.
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_ERRORS_H_
