#include "tests/rdma_mock/told.h"

#include <climits>

#include "tests/rdma_mock/failures.h"
#include "tests/rdma_mock/objects.h"

namespace viaduct::rdma_mock {
namespace {

ibv_event_type TypeOf(DeviceEvent event) {
  switch (event) {
    case DeviceEvent::kQpFatal:
      return IBV_EVENT_QP_FATAL;
    case DeviceEvent::kQpReqErr:
      return IBV_EVENT_QP_REQ_ERR;
    case DeviceEvent::kQpAccessErr:
      return IBV_EVENT_QP_ACCESS_ERR;
    case DeviceEvent::kQpLastWqeReached:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case DeviceEvent::kCommEst:
      return IBV_EVENT_COMM_EST;
    case DeviceEvent::kCqErr:
      return IBV_EVENT_CQ_ERR;
    case DeviceEvent::kSrqErr:
      return IBV_EVENT_SRQ_ERR;
    case DeviceEvent::kSrqLimitReached:
      return IBV_EVENT_SRQ_LIMIT_REACHED;
    case DeviceEvent::kPortErr:
      return IBV_EVENT_PORT_ERR;
    case DeviceEvent::kPortActive:
      return IBV_EVENT_PORT_ACTIVE;
    case DeviceEvent::kLidChange:
      return IBV_EVENT_LID_CHANGE;
    case DeviceEvent::kPkeyChange:
      return IBV_EVENT_PKEY_CHANGE;
    case DeviceEvent::kGidChange:
      return IBV_EVENT_GID_CHANGE;
    case DeviceEvent::kDeviceFatal:
      break;
  }
  return IBV_EVENT_DEVICE_FATAL;
}

rdma_cm_event_type TypeOf(IdEvent event) {
  switch (event) {
    case IdEvent::kAddrError:
      return RDMA_CM_EVENT_ADDR_ERROR;
    case IdEvent::kRouteError:
      return RDMA_CM_EVENT_ROUTE_ERROR;
    case IdEvent::kConnectResponse:
      return RDMA_CM_EVENT_CONNECT_RESPONSE;
    case IdEvent::kConnectError:
      return RDMA_CM_EVENT_CONNECT_ERROR;
    case IdEvent::kUnreachable:
      return RDMA_CM_EVENT_UNREACHABLE;
    case IdEvent::kRejected:
      return RDMA_CM_EVENT_REJECTED;
    case IdEvent::kEstablished:
      return RDMA_CM_EVENT_ESTABLISHED;
    case IdEvent::kDisconnected:
      return RDMA_CM_EVENT_DISCONNECTED;
    case IdEvent::kDeviceRemoval:
      return RDMA_CM_EVENT_DEVICE_REMOVAL;
    case IdEvent::kMulticastError:
      return RDMA_CM_EVENT_MULTICAST_ERROR;
    case IdEvent::kAddrChange:
      return RDMA_CM_EVENT_ADDR_CHANGE;
    case IdEvent::kTimewaitExit:
      break;
  }
  return RDMA_CM_EVENT_TIMEWAIT_EXIT;
}

static_assert(static_cast<int>(WorkStatus::kWrFlushErr) == IBV_WC_WR_FLUSH_ERR);
static_assert(static_cast<int>(WorkStatus::kRnrRetryExcErr) == IBV_WC_RNR_RETRY_EXC_ERR);
static_assert(static_cast<int>(WorkStatus::kGeneralErr) == IBV_WC_GENERAL_ERR);

Work WorkOf(const ibv_send_wr* request) {
  if (request == nullptr) return Work::kReceive;
  switch (request->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return Work::kWrite;
    case IBV_WR_RDMA_READ:
      return Work::kRead;
    case IBV_WR_BIND_MW:
      return Work::kBind;
    default:
      return Work::kSend;
  }
}

}  // namespace

void TellOfDevice(DeviceEvent event) {
  const ibv_event_type type = TypeOf(event);
  switch (event) {
    case DeviceEvent::kQpFatal:
    case DeviceEvent::kQpReqErr:
    case DeviceEvent::kQpAccessErr:
    case DeviceEvent::kQpLastWqeReached:
    case DeviceEvent::kCommEst:
      return Existing<QueuePair>().ForEach([type](QueuePair& pair) { Push(type, pair); });
    case DeviceEvent::kCqErr:
      return Existing<CompletionQueue>().ForEach([type](CompletionQueue& queue) {
        ibv_async_event told = {};
        told.element.cq = &queue;
        told.event_type = type;
        PushEvent(told, &queue);
      });
    case DeviceEvent::kSrqErr:
    case DeviceEvent::kSrqLimitReached:
      return Existing<SharedQueue>().ForEach([type](SharedQueue& queue) {
        ibv_async_event told = {};
        told.element.srq = &queue;
        told.event_type = type;
        PushEvent(told, &queue);
      });
    default:
      break;
  }
  ibv_async_event told = {};
  told.element.port_num = 1;
  told.event_type = type;
  PushEvent(told, nullptr);
}

void TellIds(Ids which, IdEvent event, int status) { TellIds(which, TypeOf(event), status); }

void FailWork(Work work, WorkStatus status, int before) {
  mishaps.failing_work = static_cast<int>(work);
  mishaps.work_before = before;
  mishaps.work_status = static_cast<int>(status);
  failures_armed = status != WorkStatus::kSuccess;
}

ibv_wc_status ToldStatus(const ibv_send_wr* request) {
  const int status = mishaps.work_status;
  if (status == 0 || mishaps.failing_work != static_cast<int>(WorkOf(request))) {
    return IBV_WC_SUCCESS;
  }
  if (mishaps.work_before.fetch_sub(1) != 0) return IBV_WC_SUCCESS;
  mishaps.work_status = 0;
  return static_cast<ibv_wc_status>(status);
}

void ShowAtMost(int count) { mishaps.most_shown = count; }

void ShowAll() { mishaps.most_shown = INT_MAX; }

void RingInVain() {
  Existing<CompletionQueue>().ForEach([](CompletionQueue& queue) { queue.Ring(); });
}

}  // namespace viaduct::rdma_mock
