// Remote memory regions: parts of a region that the peer accesses by a context of their own.
#include "dat/api/rmr.h"

#include "dat/api/face.h"
#include "dat/api/lmr.h"
#include "dat/api/registration.h"
#include "dat/api/request_flags.h"
#include "dat/core/endpoint.h"
#include "dat/core/memory_window.h"

namespace viaduct::dat {
namespace {

constexpr DAT_RETURN kBadRmr = BadHandle(DAT_INVALID_HANDLE_RMR);

core::Ref<core::MemoryWindow> ShareRmr(DAT_RMR_HANDLE handle) {
  return Share<core::MemoryWindow>(handle);
}

}  // namespace

DAT_RETURN CreateWindow(DAT_PZ_HANDLE pz_handle, verbs::WindowScope scope,
                        DAT_RMR_HANDLE* rmr_handle) {
  return Control([&]() -> DAT_RETURN {
    auto zone = Share<core::ProtectionZone>(pz_handle);
    if (!zone) return kBadPz;
    if (rmr_handle == nullptr) return BadParameter(2);
    core::Ref<core::MemoryWindow> window;
    core::Error error = core::MemoryWindow::Create(*zone, scope, &window);
    if (error.ok()) *rmr_handle = window->handle();
    return ToReturn(error);
  });
}

DAT_RETURN BindWindow(const WindowRequest& request) {
  return Control([&]() -> DAT_RETURN {
    auto window = ShareRmr(request.rmr);
    if (!window) return kBadRmr;
    auto endpoint = ShareOf<core::Endpoint>(window->adapter(), request.ep);
    if (!endpoint) return kBadEp;
    if (request.triplet == nullptr) return BadParameter(request.triplet_argument);
    const DAT_LMR_TRIPLET& triplet = *request.triplet;
    core::MemoryWindow::Binding binding;
    binding.address = triplet.virtual_address;
    binding.length = triplet.segment_length;
    if (binding.length != 0) {
      if (request.lmr != DAT_HANDLE_NULL) {
        binding.region = ShareOf<core::MemoryRegion>(window->adapter(), request.lmr);
        if (!binding.region) return kBadLmr;
      } else {
        binding.region = window->adapter().FindRegion(triplet.lmr_context);
      }
      if (!binding.region || binding.region->key() != triplet.lmr_context) {
        return BadParameter(request.triplet_argument);
      }
    }
    const auto privileges = static_cast<unsigned>(request.privileges);
    if ((privileges & ~kPrivilegeFlags) != 0) return BadParameter(request.triplet_argument + 1);
    if (!request.base) return BadParameter(request.triplet_argument + 2);
    binding.base = *request.base;
    binding.access = RemoteAccess(privileges);
    constexpr unsigned kNotForBinds = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
    const auto flags = static_cast<unsigned>(request.flags);
    if ((flags & ~RequestFlagsOf(*endpoint)) != 0 || (flags & kNotForBinds) != 0) {
      return BadParameter(request.flags_argument);
    }
    verbs::Key key = 0;
    core::Error error =
        window->Bind(*endpoint, binding, request.cookie.as_64, ToRequestFlags(flags), &key);
    if (error.code == core::Code::kInvalidParameter) return BadParameter(request.triplet_argument);
    if (error.ok() && request.context != nullptr) *request.context = key;
    return ToReturn(error);
  });
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr_handle) {
  return CreateWindow(pz_handle, verbs::WindowScope::kDomain, rmr_handle);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto window = ShareRmr(rmr_handle);
    if (!window) return kBadRmr;
    if ((static_cast<unsigned>(mask) & ~unsigned{DAT_RMR_FIELD_ALL}) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    const core::MemoryWindow::Binding binding = window->binding();
    *param = {};
    param->ia_handle = ShownHandle(window->adapter());
    param->pz_handle = window->zone().handle();
    if (binding.region) {
      param->lmr_triplet.lmr_context = binding.region->key();
      param->lmr_triplet.virtual_address = binding.address;
      SetSegmentLength(binding.length, &param->lmr_triplet);
      param->mem_priv = ToPrivileges(binding.access);
      param->rmr_context = binding.key;
    }
    SetVersionFields(window->scope(), binding.base, param);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle) {
  return Control([&]() -> DAT_RETURN {
    auto window = ShareRmr(rmr_handle);
    return window ? ToReturn(window->Free()) : kBadRmr;
  });
}

}  // namespace viaduct::dat
