#include "verbs/rdma/errors.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "verbs/base/log.h"

namespace viaduct::verbs::rdma {
namespace {

// Reasons of a reject (InfiniBand 1.4, table 112): no service listens, an earlier connection is in
// the way, a consumer has rejected the request.
constexpr int kInvalidServiceId = 8;
constexpr int kStaleConnection = 10;
constexpr int kConsumerDefined = 28;

// The status of a connection that the peer's program rejected, and of one that its TCP does not
// take or that was closed before MPA's answer. siw has the two numbers the other way round than
// cxgb4, irdma and qedr.
constexpr int MpasReject(Manager manager) {
  return manager == Manager::kSiw ? -ECONNRESET : -ECONNREFUSED;
}
constexpr int TcpsReset(Manager manager) {
  return manager == Manager::kSiw ? -ECONNREFUSED : -ECONNRESET;
}

// An adapter's own TCP found no neighbour (cxgb4), no answer (qedr), no memory, or another
// connection of the port (cxgb4).
constexpr bool IsOfAdaptersTcp(int status, Manager manager) {
  return manager == Manager::kIwarp &&
         (status == -EHOSTUNREACH || status == -ENETUNREACH || status == -EBUSY ||
          status == -ENOMEM || status == -EADDRINUSE);
}

// The peer has answered, but what follows failed on this side with this errno.
ConnectOutcome OutcomeOfAnswer(int error) {
  if (error == ETIMEDOUT) return ConnectOutcome::kUnreachable;  // the neighbour has gone (RoCE)
  const bool shortage = OutcomeOfErrno(error) == ConnectOutcome::kNoResources;
  return shortage ? ConnectOutcome::kNoResources : ConnectOutcome::kRefused;
}

std::string LockedMemoryLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return absl::StrCat(limit.rlim_cur / 1024, " KiB");
}

std::string ErrnoText(int error, absl::string_view what) {
  return absl::StrCat(what, ": ", std::strerror(error));
}

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case EADDRINUSE:
      return absl::StatusCode::kAlreadyExists;
    case ENOENT:
    case EADDRNOTAVAIL:
    case ENODEV:
      return absl::StatusCode::kNotFound;
    case ENOMEM:
    case EINVAL:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:
    case EAGAIN:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

Status CompletionStatus(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return Status::kSuccess;
    case IBV_WC_WR_FLUSH_ERR:
      return Status::kFlushed;
    case IBV_WC_LOC_LEN_ERR:
      return Status::kLocalLength;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
      return Status::kLocalProtection;
    case IBV_WC_REM_ACCESS_ERR:
      return Status::kRemoteAccess;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return Status::kRemoteOperation;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return Status::kReceiverNotReady;
    default:
      return Status::kTransport;
  }
}

Status ReceiveStatus(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return Status::kLocalLength;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
      return Status::kLocalProtection;
    case IBV_WC_SUCCESS:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return CompletionStatus(status);
    default:
      return Status::kTransport;
  }
}

ConnectOutcome OutcomeOf(rdma_cm_event_type event, int status, Manager manager, bool has_data) {
  switch (event) {
    case RDMA_CM_EVENT_REJECTED:
      if (manager == Manager::kInfiniband) {
        if (status == kInvalidServiceId) return ConnectOutcome::kNobody;
        return status == kConsumerDefined ? ConnectOutcome::kRejected : ConnectOutcome::kRefused;
      }
      if (has_data || status == MpasReject(manager)) return ConnectOutcome::kRejected;
      return status == TcpsReset(manager) ? ConnectOutcome::kNobody : ConnectOutcome::kRefused;
    case RDMA_CM_EVENT_CONNECT_ERROR:
      if (manager == Manager::kInfiniband) return OutcomeOfAnswer(-status);
      return IsOfAdaptersTcp(status, manager) ? OutcomeOfErrno(-status) : ConnectOutcome::kRefused;
    case RDMA_CM_EVENT_UNREACHABLE:
      // TCP got its answer, but MPA got none within the kernel's ten seconds.
      if (manager == Manager::kSiw && status == -ETIMEDOUT) return ConnectOutcome::kRefused;
      [[fallthrough]];
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return status < 0 ? OutcomeOfErrno(-status) : ConnectOutcome::kUnreachable;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return ConnectOutcome::kNoResources;
    default:
      return ConnectOutcome::kRefused;
  }
}

bool IsStale(rdma_cm_event_type event, int status, Manager manager) {
  if (manager == Manager::kInfiniband) {
    return event == RDMA_CM_EVENT_REJECTED && status == kStaleConnection;
  }
  if (event == RDMA_CM_EVENT_CONNECT_ERROR) {
    return manager == Manager::kIwarp && status == -EADDRINUSE;
  }
  return event == RDMA_CM_EVENT_ADDR_ERROR && (status == -EADDRINUSE || status == -EADDRNOTAVAIL);
}

bool IsProgramsReject(rdma_cm_event_type event, int status, Manager manager) {
  return manager == Manager::kInfiniband && event == RDMA_CM_EVENT_REJECTED &&
         status == kConsumerDefined;
}

bool HeardWith(rdma_cm_event_type event, int status, Manager manager) {
  switch (event) {
    // Neighbour discovery got an answer.
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
      return true;
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return !IsOfAdaptersTcp(status, manager);
    case RDMA_CM_EVENT_UNREACHABLE:
      if (manager == Manager::kSiw && status == -ETIMEDOUT) return true;
      [[fallthrough]];
    case RDMA_CM_EVENT_ADDR_ERROR:
      return status == -ECONNREFUSED || status == -ECONNRESET;
    default:
      return false;
  }
}

bool IsOfTheWay(rdma_cm_event_type event) {
  return event == RDMA_CM_EVENT_ADDR_CHANGE || event == RDMA_CM_EVENT_UNREACHABLE;
}

ConnectOutcome OutcomeOfErrno(int error) {
  switch (error) {
    case ECONNREFUSED:
      return ConnectOutcome::kNobody;
    case ECONNRESET:
    case EPROTO:
      return ConnectOutcome::kRefused;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case EADDRNOTAVAIL:
    case EADDRINUSE:
      return ConnectOutcome::kNoResources;
    default:
      return ConnectOutcome::kUnreachable;
  }
}

absl::string_view Explanation(ConnectOutcome outcome) {
  switch (outcome) {
    case ConnectOutcome::kRefused:
      return "the peer answers, but not as one that takes connections: is it an RDMA program?";
    case ConnectOutcome::kNobody:
      return "nobody listens at that port: is the server started, and on this port?";
    case ConnectOutcome::kRejected:
      return "the peer's program has said no";
    case ConnectOutcome::kUnreachable:
      return "no way there: see ip route get, ip neighbour and rdma link";
    case ConnectOutcome::kNoResources:
      return "no more of what it needs here: see ulimit -n and ulimit -l";
    case ConnectOutcome::kGone:
      return "the peer has given up";
  }
  return "";
}

void LogErrno(int error, absl::string_view what) try {
  const std::string text = ErrnoText(error, what);
  if (error == ENOMEM) {
    Log(LogLevel::kWarn, text, "; a process may lock ", LockedMemoryLimit(),
        " here: raise it with ulimit -l, or memlock in /etc/security/limits.conf");
    return;
  }
  if (error == ENOENT) {
    Log(LogLevel::kWarn, text, "; modprobe -a rdma_ucm ib_uverbs makes it");
    return;
  }
  switch (CodeOf(error)) {
    case absl::StatusCode::kPermissionDenied:
      Log(LogLevel::kWarn, text,
          "; /dev/infiniband/uverbs* and rdma_cm must be open to this user (see viaduct(7)), and "
          "ports below 1024 are root's");
      break;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kNotFound:
      break;  // the status says all that there is to say
    case absl::StatusCode::kResourceExhausted:
      Log(LogLevel::kWarn, text, "; the device or the process has no more of it");
      break;
    default:
      Log(LogLevel::kWarn, text);
  }
} catch (const std::bad_alloc&) {  // the line is lost
}

absl::Status ErrnoStatus(int error, absl::string_view what) {
  LogErrno(error, what);
  return absl::Status(CodeOf(error), ErrnoText(error, what));
}

}  // namespace viaduct::verbs::rdma
