// The functions that cLAN and its descendants added. A program may keep a pointer of its own with a
// VI. Tags on completion queues and deferred sends are not supported: their functions return
// VIP_ERROR_NOT_SUPPORTED if the arguments are valid.
#include "dat/core/handle_table.h"
#include "vipl/cq.h"
#include "vipl/face.h"
#include "vipl/vi.h"

using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Cq;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;

VIPL_EXPORT VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) {
  VIP_PVOID data = nullptr;
  Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi) return VIP_INVALID_PARAMETER;
    data = vi->user_data().load();
    return VIP_SUCCESS;
  });
  return data;
}

VIPL_EXPORT void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData) {
  Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi) return VIP_INVALID_PARAMETER;
    vi->user_data().store(UserData);
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipAddTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE* Event,
                                   VIP_ULONG /*Tag*/, VIP_ULONG /*Priority*/) {
  return Control([&]() -> VIP_RETURN {
    if (!ShareObject<Cq>(CQHandle) || Event == nullptr) return VIP_INVALID_PARAMETER;
    return VIP_ERROR_NOT_SUPPORTED;
  });
}

VIPL_EXPORT VIP_RETURN VipRemoveTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE /*Event*/,
                                      VIP_ULONG /*Tag*/) {
  return Control([&]() -> VIP_RETURN {
    return ShareObject<Cq>(CQHandle) ? VIP_ERROR_NOT_SUPPORTED : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN /*EnableInterrupt*/,
                                            VIP_BOOLEAN* SendsDeferred) {
  return Control([&]() -> VIP_RETURN {
    if (!ShareVi(ViHandle) || SendsDeferred == nullptr) return VIP_INVALID_PARAMETER;
    return VIP_ERROR_NOT_SUPPORTED;
  });
}
