// Connection requests.
#include "dat/api/cr.h"

#include "dat/api/face.h"
#include "dat/core/connection_request.h"

namespace viaduct::dat {
namespace {

core::Ref<core::ConnectionRequest> ShareCr(DAT_CR_HANDLE handle) {
  return Share<core::ConnectionRequest>(handle);
}
constexpr DAT_RETURN kBadCr = BadHandle(DAT_INVALID_HANDLE_CR);
constexpr DAT_RETURN kRefusedCr = Failure(DAT_INVALID_STATE);  // by the device

}  // namespace

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto request = ShareCr(cr_handle);
    if (!request) return kBadCr;
    if ((mask & ~DAT_CR_FIELD_ALL) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    const absl::Span<const uint8_t> data = request->private_data();
    const core::Ref<core::Endpoint> endpoint = request->endpoint();
    param->remote_ia_address_ptr = ToPointer(request->remote_address());
    param->remote_port_qual = request->remote_port();
    param->private_data_size = static_cast<DAT_COUNT>(data.size());
    param->private_data = data.empty() ? nullptr : const_cast<uint8_t*>(data.data());
    param->local_ep_handle = endpoint ? endpoint->handle() : DAT_HANDLE_NULL;
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
                         DAT_COUNT private_data_size, const DAT_PVOID private_data) {
  return Control([&]() -> DAT_RETURN {
    auto request = ShareCr(cr_handle);
    if (!request) return kBadCr;
    core::Ref<core::Endpoint> endpoint = ShareOf<core::Endpoint>(request->adapter(), ep_handle);
    if (!endpoint && ep_handle != DAT_HANDLE_NULL) return kBadEp;
    DAT_RETURN checked = CheckPrivateData(request->adapter(), private_data_size, private_data, 3);
    if (checked != DAT_SUCCESS) return checked;
    const core::Error error =
        request->Accept(endpoint.get(), PrivateData(private_data_size, private_data));
    return error.code == core::Code::kTimeout ? kRefusedCr : ToReturn(error);
  });
}

DAT_RETURN RejectRequest(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
                         const void* private_data) {
  return Control([&]() -> DAT_RETURN {
    auto request = ShareCr(cr_handle);
    if (!request) return kBadCr;
    DAT_RETURN checked = CheckPrivateData(request->adapter(), private_data_size, private_data, 2);
    if (checked != DAT_SUCCESS) return checked;
    return ToReturn(request->Reject(PrivateData(private_data_size, private_data)));
  });
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff) {
  return Control([&]() -> DAT_RETURN {
    auto request = ShareCr(cr_handle);
    if (!request) return kBadCr;
    return ToReturn(request->HandOff(core::ServiceName::FromQualifier(handoff)));
  });
}

}  // namespace viaduct::dat
