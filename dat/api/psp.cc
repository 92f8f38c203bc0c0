// Public service points.
#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/api/service_points.h"

namespace viaduct::dat {
namespace {

core::Ref<core::ServicePoint> SharePsp(DAT_PSP_HANDLE handle) {
  return SharePoint(handle, core::ObjectType::kPublicServicePoint);
}
constexpr DAT_RETURN kBadPsp = BadHandle(DAT_INVALID_HANDLE_PSP);

// Takes parameters 4 and 5 of both functions that create a point.
DAT_RETURN TakeOptions(DAT_PSP_FLAGS psp_flags, const DAT_PSP_HANDLE* psp_handle,
                       core::ServicePoint::Options* options) {
  const auto flags = static_cast<unsigned>(psp_flags);
  if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG) return BadParameter(4);
  if (psp_handle == nullptr) return BadParameter(5);
  options->provider_endpoint = flags == DAT_PSP_PROVIDER_FLAG;
  return DAT_SUCCESS;
}

}  // namespace

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
                          DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
                          DAT_PSP_HANDLE* psp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    auto dispatcher = ShareRequestDispatcher(*adapter, evd_handle);
    if (!dispatcher) return BadHandle(DAT_INVALID_HANDLE_EVD_CR);
    core::ServicePoint::Options options;
    DAT_RETURN taken = TakeOptions(psp_flags, psp_handle, &options);
    if (taken != DAT_SUCCESS) return taken;
    options.name = core::ServiceName::FromQualifier(conn_qual);
    core::Ref<core::ServicePoint> point;
    core::Error error = core::ServicePoint::CreatePublic(*adapter, options, *dispatcher, &point);
    if (error.ok()) *psp_handle = point->handle();
    return ToReturn(error);
  });
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* conn_qual,
                              DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
                              DAT_PSP_HANDLE* psp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (conn_qual == nullptr) return BadParameter(2);
    auto dispatcher = ShareRequestDispatcher(*adapter, evd_handle);
    if (!dispatcher) return BadHandle(DAT_INVALID_HANDLE_EVD_CR);
    core::ServicePoint::Options options;
    DAT_RETURN taken = TakeOptions(psp_flags, psp_handle, &options);
    if (taken != DAT_SUCCESS) return taken;
    uint64_t qualifier = 0;
    core::Ref<core::ServicePoint> point;
    core::Error error =
        core::ServicePoint::CreatePublicAny(*adapter, options, *dispatcher, &qualifier, &point);
    if (error.ok()) {
      *conn_qual = qualifier;
      *psp_handle = point->handle();
    }
    return ToReturn(error);
  });
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto point = SharePsp(psp_handle);
    if (!point) return kBadPsp;
    if ((mask & ~DAT_PSP_FIELD_ALL) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    param->ia_handle = ShownHandle(point->adapter());
    param->conn_qual = QualifierOf(*point);
    param->evd_handle = point->dispatcher().handle();
    param->psp_flags =
        point->options().provider_endpoint ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG;
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto point = SharePsp(psp_handle);
    return point ? ToReturn(point->Free()) : kBadPsp;
  });
}

}  // namespace viaduct::dat
