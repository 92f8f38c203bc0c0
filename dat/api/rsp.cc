// Reserved service points.
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/api/service_points.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {
namespace {

core::Ref<core::ServicePoint> ShareRsp(DAT_RSP_HANDLE handle) {
  return SharePoint(handle, core::ObjectType::kReservedServicePoint);
}
constexpr DAT_RETURN kBadRsp = BadHandle(DAT_INVALID_HANDLE_RSP);

}  // namespace

// If the endpoint is DAT_HANDLE_NULL, the provider creates one, which dat_rsp_query shows.
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    auto endpoint = ShareOf<core::Endpoint>(*adapter, ep_handle);
    if (!endpoint && ep_handle != DAT_HANDLE_NULL) return kBadEp;
    auto dispatcher = ShareRequestDispatcher(*adapter, evd_handle);
    if (!dispatcher) return BadHandle(DAT_INVALID_HANDLE_EVD_CR);
    if (rsp_handle == nullptr) return BadParameter(5);
    core::Ref<core::Endpoint> made_here;
    // Also runs if memory runs out below.
    absl::Cleanup undo = [&] {
      if (made_here) made_here->Destroy();
    };
    if (!endpoint) {
      const auto attributes = core::EndpointAttributes::DefaultOn(adapter->context().attributes());
      core::Error error =
          core::Endpoint::Create(*adapter, core::Endpoint::Parts(), attributes, &made_here);
      if (!error.ok()) return ToReturn(error);
      endpoint = made_here;
    }
    core::Ref<core::ServicePoint> point;
    core::Error error = core::ServicePoint::CreateReserved(
        *adapter, core::ServiceName::FromQualifier(conn_qual), *endpoint, *dispatcher, &point);
    if (!error.ok()) return ToReturn(error);
    std::move(undo).Cancel();
    *rsp_handle = point->handle();
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto point = ShareRsp(rsp_handle);
    if (!point) return kBadRsp;
    if ((mask & ~DAT_RSP_FIELD_ALL) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    const core::Ref<core::Endpoint> endpoint = point->endpoint();
    param->ia_handle = ShownHandle(point->adapter());
    param->conn_qual = QualifierOf(*point);
    param->evd_handle = point->dispatcher().handle();
    param->ep_handle = endpoint ? endpoint->handle() : DAT_HANDLE_NULL;
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto point = ShareRsp(rsp_handle);
    return point ? ToReturn(point->Free()) : kBadRsp;
  });
}

}  // namespace viaduct::dat
