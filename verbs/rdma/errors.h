// What the verbs and the connection manager say, in the words of verbs/device.h.
#ifndef VIADUCT_VERBS_RDMA_ERRORS_H_
#define VIADUCT_VERBS_RDMA_ERRORS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

// Of a work completion.
Status CompletionStatus(ibv_wc_status status);

// An attempt that ended with this event. `iwarp`: the kernel's number is an errno and not the
// reason of an InfiniBand reject. `has_data`: private data came along.
ConnectOutcome OutcomeOf(rdma_cm_event_type event, int status, bool iwarp, bool has_data);
// True if the event can only come after the peer's host has said something.
bool HeardWith(rdma_cm_event_type event, int status, bool iwarp);
// rdma_connect or a resolution failed at once with this errno.
ConnectOutcome OutcomeOfErrno(int error);

// An error of a call that makes something, `what` in the log with what can be done about it:
// ResourceExhausted, PermissionDenied, AlreadyExists, NotFound, Unavailable.
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_ERRORS_H_
