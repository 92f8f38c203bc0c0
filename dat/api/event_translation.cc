#include "dat/api/event_translation.h"

namespace viaduct::dat {
namespace {

void SetBind(const core::Event& event, DAT_EVENT* out) {
  out->event_number = DAT_RMR_BIND_COMPLETION_EVENT;
  DAT_RMR_BIND_COMPLETION_EVENT_DATA& data = out->event_data.rmr_completion_event_data;
  data.rmr_handle = event.subject;
  data.user_cookie.as_64 = event.cookie;
  data.status = event.status == verbs::Status::kSuccess || event.status == verbs::Status::kFlushed
                    ? ToDatStatus(event.status)
                    : DAT_RMR_OPERATION_FAILED;
}

void SetRequest(const core::Event& event, const verbs::Address& local, DAT_EVENT* out) {
  out->event_number = DAT_CONNECTION_REQUEST_EVENT;
  DAT_CR_ARRIVAL_EVENT_DATA& data = out->event_data.cr_arrival_event_data;
  data.sp_handle.psp_handle = event.service_point;
  data.local_ia_address_ptr = const_cast<sockaddr*>(local.data());
  data.conn_qual = event.qualifier;
  data.cr_handle = event.subject;
  SetVersionFields(&data);
}

void SetConnection(DAT_EVENT_NUMBER number, const core::Event& event, DAT_EVENT* out) {
  out->event_number = number;
  DAT_CONNECTION_EVENT_DATA& data = out->event_data.connect_event_data;
  data.ep_handle = event.subject;
  data.private_data_size = static_cast<DAT_COUNT>(event.private_data_size);
  data.private_data = const_cast<void*>(event.private_data);
}

void SetAsync(DAT_EVENT_NUMBER number, DAT_COUNT reason, const core::Event& event, DAT_EVENT* out) {
  out->event_number = number;
  out->event_data.asynch_error_event_data.dat_handle = event.subject;
  out->event_data.asynch_error_event_data.reason = reason;
}

}  // namespace

DAT_DTO_COMPLETION_STATUS ToDatStatus(verbs::Status status) {
  switch (status) {
    case verbs::Status::kSuccess:
      return DAT_DTO_SUCCESS;
    case verbs::Status::kFlushed:
      return DAT_DTO_ERR_FLUSHED;
    case verbs::Status::kLocalLength:
      return DAT_DTO_ERR_LOCAL_LENGTH;
    case verbs::Status::kLocalProtection:
      return DAT_DTO_ERR_LOCAL_PROTECTION;
    case verbs::Status::kRemoteAccess:
      return DAT_DTO_ERR_REMOTE_ACCESS;
    case verbs::Status::kRemoteOperation:
      return DAT_DTO_ERR_REMOTE_RESPONDER;
    case verbs::Status::kReceiverNotReady:
      return DAT_DTO_ERR_RECEIVER_NOT_READY;
    case verbs::Status::kTransport:
      break;
  }
  return DAT_DTO_ERR_TRANSPORT;
}

void ToDatEvent(const core::Event& event, DAT_EVD_HANDLE evd, const verbs::Address& local,
                DAT_EVENT* out) {
  if (IsTransfer(event)) return ToTransferEvent(event, evd, out);
  out->evd_handle = evd;
  switch (event.type) {
    case core::EventType::kCompletion:
      return SetBind(event, out);
    case core::EventType::kConnectionRequest:
      return SetRequest(event, local, out);
    case core::EventType::kEstablished:
      return SetConnection(DAT_CONNECTION_EVENT_ESTABLISHED, event, out);
    case core::EventType::kPeerRejected:
      return SetConnection(DAT_CONNECTION_EVENT_PEER_REJECTED, event, out);
    case core::EventType::kNonPeerRejected:
      return SetConnection(DAT_CONNECTION_EVENT_NON_PEER_REJECTED, event, out);
    case core::EventType::kAcceptCompletionError:
      return SetConnection(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, event, out);
    case core::EventType::kDisconnected:
      return SetConnection(DAT_CONNECTION_EVENT_DISCONNECTED, event, out);
    case core::EventType::kBroken:
      return SetConnection(DAT_CONNECTION_EVENT_BROKEN, event, out);
    case core::EventType::kTimedOut:
      return SetConnection(DAT_CONNECTION_EVENT_TIMED_OUT, event, out);
    case core::EventType::kUnreachable:
    // What dat_ep_connect could not return itself. DAT has no event for it; UNREACHABLE is the one
    // for an attempt that failed on this side, before it reached the peer.
    case core::EventType::kNoResources:
      return SetConnection(DAT_CONNECTION_EVENT_UNREACHABLE, event, out);
    case core::EventType::kSoftware:
      out->event_number = DAT_SOFTWARE_EVENT;
      out->event_data.software_event_data.pointer = event.pointer;
      return;
    case core::EventType::kAsyncEndpointBroken:
      return SetAsync(DAT_ASYNC_ERROR_EP_BROKEN, DAT_EP_TRANSFER_TO_ERROR, event, out);
    case core::EventType::kAsyncHighWatermark:
      return SetAsync(DAT_ASYNC_ERROR_EP_BROKEN, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT, event, out);
    case core::EventType::kAsyncOverflow:
      return SetAsync(DAT_ASYNC_ERROR_EVD_OVERFLOW, DAT_EVD_OVERFLOW_ERROR, event, out);
    // DAT has a reason for it but no event number: a consumer recognizes it by the handle.
    case core::EventType::kAsyncSharedReceivesLow:
      return SetAsync(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, DAT_SRQ_LOW_WATERMARK_EVENT, event,
                      out);
    case core::EventType::kAsyncAdapterFailed:
      return SetAsync(DAT_ASYNC_ERROR_IA_CATASTROPHIC, DAT_IA_CATASTROPHIC_ERROR, event, out);
  }
}

}  // namespace viaduct::dat
