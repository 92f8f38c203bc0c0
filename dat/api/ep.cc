// Endpoints: creation, attributes, state, end.
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/api/ep_attributes.h"
#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/core/endpoint.h"
#include "dat/core/receive_watch.h"
#include "verbs/base/lock.h"

namespace viaduct::dat {
namespace {

// The bits that dat_ep_query accepts: all fields, and the bit that 1.2 leaves out. MVAPICH2 passes
// 0xFFFF and does not check the result.
constexpr DAT_EP_PARAM_MASK kShownEpFields = DAT_EP_PARAM_MASK{DAT_EP_FIELD_ALL} | 0x800;

core::Ref<core::Endpoint> ShareEp(DAT_EP_HANDLE handle) { return Share<core::Endpoint>(handle); }

// Every part may be DAT_HANDLE_NULL: the program does not want it, or sets it with dat_ep_modify.
DAT_RETURN TakeZone(core::InterfaceAdapter& adapter, DAT_PZ_HANDLE handle,
                    core::Endpoint::Parts* parts) {
  parts->zone = ShareOf<core::ProtectionZone>(adapter, handle);
  return handle == DAT_HANDLE_NULL || parts->zone ? DAT_RETURN{DAT_SUCCESS} : kBadPz;
}
DAT_RETURN TakeDispatcher(core::InterfaceAdapter& adapter, DAT_EVD_HANDLE handle,
                          core::Stream stream, DAT_UINT32 subtype,
                          core::Ref<core::EventDispatcher>* part) {
  *part = ShareDispatcher(adapter, handle, stream);
  return handle == DAT_HANDLE_NULL || *part ? DAT_RETURN{DAT_SUCCESS} : BadHandle(subtype);
}

DAT_HANDLE HandleOf(const core::Ref<core::ProtectionZone>& zone) {
  return zone ? zone->handle() : DAT_HANDLE_NULL;
}
DAT_HANDLE HandleOf(const core::Ref<core::EventDispatcher>& dispatcher) {
  return dispatcher ? dispatcher->handle() : DAT_HANDLE_NULL;
}

// Replaces those of the endpoint's parts that `mask` names.
DAT_RETURN TakeParts(core::InterfaceAdapter& adapter, DAT_EP_PARAM_MASK mask,
                     const DAT_EP_PARAM& param, core::Endpoint::Parts* parts) {
  DAT_RETURN taken = DAT_SUCCESS;
  if ((mask & DAT_EP_FIELD_PZ_HANDLE) != 0) taken = TakeZone(adapter, param.pz_handle, parts);
  if (taken == DAT_SUCCESS && (mask & DAT_EP_FIELD_RECV_EVD_HANDLE) != 0) {
    taken = TakeDispatcher(adapter, param.recv_evd_handle, core::kCompletionStream,
                           DAT_INVALID_HANDLE_EVD_RECV, &parts->receive);
  }
  if (taken == DAT_SUCCESS && (mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE) != 0) {
    taken = TakeDispatcher(adapter, param.request_evd_handle, core::kCompletionStream,
                           DAT_INVALID_HANDLE_EVD_REQUEST, &parts->request);
  }
  if (taken == DAT_SUCCESS && (mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE) != 0) {
    taken = TakeDispatcher(adapter, param.connect_evd_handle, core::kConnectionStream,
                           DAT_INVALID_HANDLE_EVD_CONN, &parts->connect);
  }
  return taken;
}

// A shared queue and its endpoints must have the same zone.
bool FitsReceives(const core::Endpoint::Parts& parts) {
  return !parts.zone || !parts.shared_receives ||
         parts.zone.get() == &parts.shared_receives->zone();
}

// `mask`: the attributes that this call sets. Setting the soft watermark to its old value rearms
// it.
void KeepAsked(core::Endpoint& endpoint, const AskedAttributes& asked, DAT_EP_PARAM_MASK mask) {
  const AskedAttributes before = AskedAttributes::Unpack(endpoint.face_word());
  endpoint.set_face_word(asked.Pack());
  if ((mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW) == 0) return;
  if (!asked.soft_high && !before.soft_high) return;
  endpoint.SetWatermarks(asked.soft_high.value_or(core::ReceiveWatch::kNoLimit), std::nullopt);
}

// `asked`: the attributes for the endpoint's face word.
DAT_RETURN MakeEndpoint(core::InterfaceAdapter& adapter, const core::Endpoint::Parts& parts,
                        const core::EndpointAttributes& attributes, const AskedAttributes& asked,
                        DAT_EP_HANDLE* ep_handle) {
  core::Ref<core::Endpoint> endpoint;
  core::Error error = core::Endpoint::Create(adapter, parts, attributes, &endpoint);
  if (!error.ok()) return ToReturn(error);
  absl::Cleanup undo = [&] { endpoint->Destroy(); };  // if memory runs out
  KeepAsked(*endpoint, asked, DAT_EP_FIELD_EP_ATTR_ALL);
  std::move(undo).Cancel();
  *ep_handle = endpoint->handle();
  return DAT_SUCCESS;
}

constexpr DAT_EP_PARAM_MASK kPartFields = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                          DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                                          DAT_EP_FIELD_CONNECT_EVD_HANDLE;

// Takes the parts as dat_ep_create passes them.
DAT_RETURN TakePartHandles(core::InterfaceAdapter& adapter, DAT_PZ_HANDLE zone,
                           DAT_EVD_HANDLE receive, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
                           core::Endpoint::Parts* parts) {
  DAT_EP_PARAM param = {};
  param.pz_handle = zone;
  param.recv_evd_handle = receive;
  param.request_evd_handle = request;
  param.connect_evd_handle = connect;
  return TakeParts(adapter, kPartFields, param, parts);
}

}  // namespace

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
                         DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
                         DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR* ep_attributes,
                         DAT_EP_HANDLE* ep_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    core::Endpoint::Parts parts;
    DAT_RETURN taken = TakePartHandles(*adapter, pz_handle, recv_evd_handle, request_evd_handle,
                                       connect_evd_handle, &parts);
    if (taken != DAT_SUCCESS) return taken;
    const verbs::DeviceAttributes& device = adapter->context().attributes();
    auto attributes = core::EndpointAttributes::DefaultOn(device);
    AskedAttributes asked;
    if (ep_attributes != nullptr) {
      // Without a shared queue srq_soft_hw means nothing, and MVAPICH2 leaves it uninitialized.
      taken = ApplyAttributes(*ep_attributes,
                              DAT_EP_FIELD_EP_ATTR_ALL & ~DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, 6,
                              device, &attributes, &asked);
      if (taken != DAT_SUCCESS) return taken;
    }
    if (ep_handle == nullptr) return BadParameter(7);
    return MakeEndpoint(*adapter, parts, attributes, asked, ep_handle);
  });
}

// uDAPL 1.2 dat_ep_create_with_srq: the attributes are mandatory. What they say about receives is
// ignored, since the queue decides it. The queue's zone must be the endpoint's.
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
                                  DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
                                  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
                                  const DAT_EP_ATTR* ep_attributes, DAT_EP_HANDLE* ep_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    core::Endpoint::Parts parts;
    DAT_RETURN taken = TakePartHandles(*adapter, pz_handle, recv_evd_handle, request_evd_handle,
                                       connect_evd_handle, &parts);
    if (taken != DAT_SUCCESS) return taken;
    parts.shared_receives = ShareOf<core::SharedReceiveQueue>(*adapter, srq_handle);
    if (!parts.shared_receives) return kBadSrq;
    if (!FitsReceives(parts)) return BadParameter(2);
    if (ep_attributes == nullptr) return BadParameter(7);
    if (ep_handle == nullptr) return BadParameter(8);
    DAT_EP_ATTR without_receives = *ep_attributes;
    without_receives.max_recv_dtos = 0;
    without_receives.max_recv_iov = 0;
    const verbs::DeviceAttributes& device = adapter->context().attributes();
    auto attributes = core::EndpointAttributes::DefaultOn(device);
    AskedAttributes asked;
    taken =
        ApplyAttributes(without_receives, DAT_EP_FIELD_EP_ATTR_ALL, 7, device, &attributes, &asked);
    if (taken != DAT_SUCCESS) return taken;
    return MakeEndpoint(*adapter, parts, attributes, asked, ep_handle);
  });
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = ShareEp(ep_handle);
    if (!endpoint) return kBadEp;
    if ((mask & ~kShownEpFields) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    const core::InterfaceAdapter& adapter = endpoint->adapter();
    const core::Endpoint::Parts parts = endpoint->parts();
    param->ia_handle = ShownHandle(adapter);
    param->ep_state = static_cast<DAT_EP_STATE>(endpoint->state());
    param->local_ia_address_ptr = ToPointer(adapter.context().address());
    param->local_port_qual = endpoint->local_port();
    param->remote_ia_address_ptr = const_cast<sockaddr*>(endpoint->remote_sockaddr());
    param->remote_port_qual = endpoint->remote_qualifier();
    param->pz_handle = HandleOf(parts.zone);
    param->recv_evd_handle = HandleOf(parts.receive);
    param->request_evd_handle = HandleOf(parts.request);
    param->connect_evd_handle = HandleOf(parts.connect);
    param->srq_handle = parts.shared_receives ? parts.shared_receives->handle() : DAT_HANDLE_NULL;
    ShowAttributes(endpoint->attributes(), AskedAttributes::Unpack(endpoint->face_word()),
                   adapter.context().attributes(), &param->ep_attr);
    SetVersionFields(param);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK mask,
                         const DAT_EP_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = ShareEp(ep_handle);
    if (!endpoint) return kBadEp;
    if ((mask & ~DAT_EP_PARAM_MASK{DAT_EP_FIELD_ALL}) != 0 || (mask & kFixedEpFields) != 0) {
      return BadParameter(2);
    }
    if (param == nullptr) return BadParameter(3);
    verbs::MutexLock lock(&endpoint->adapter().modify_lock());
    core::Endpoint::Parts parts = endpoint->parts();
    DAT_RETURN taken = TakeParts(endpoint->adapter(), mask, *param, &parts);
    if (taken != DAT_SUCCESS) return taken;
    if (!FitsReceives(parts)) return BadParameter(3);
    core::EndpointAttributes attributes = endpoint->attributes();
    AskedAttributes asked = AskedAttributes::Unpack(endpoint->face_word());
    taken = ApplyAttributes(param->ep_attr, mask, 3, endpoint->adapter().context().attributes(),
                            &attributes, &asked);
    if (taken != DAT_SUCCESS) return taken;
    const bool has_parts = (mask & kPartFields) != 0;
    const bool has_attributes = (mask & DAT_EP_FIELD_EP_ATTR_ALL) != 0;
    // First the step that may run out of memory.
    if ((mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW) != 0) endpoint->MakeWatch();
    core::Error error =
        endpoint->Modify(has_parts ? &parts : nullptr, has_attributes ? &attributes : nullptr);
    if (error.ok()) KeepAsked(*endpoint, asked, mask);
    return ToReturn(error);
  });
}

// Each result may be NULL.
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE* ep_state,
                             DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = ShareEp(ep_handle);
    if (!endpoint) return kBadEp;
    if (ep_state != nullptr) *ep_state = static_cast<DAT_EP_STATE>(endpoint->state());
    if (recv_idle != nullptr) *recv_idle = ToBoolean(endpoint->open_receives() == 0);
    if (request_idle != nullptr) *request_idle = ToBoolean(endpoint->SendIdle());
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = ShareEp(ep_handle);
    return endpoint ? ToReturn(endpoint->Reset()) : kBadEp;
  });
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = ShareEp(ep_handle);
    return endpoint ? ToReturn(endpoint->Free()) : kBadEp;
  });
}

}  // namespace viaduct::dat
