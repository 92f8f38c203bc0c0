// The functions whose parameters differ between the versions, with those of 2.0.
#include <optional>

#include "dat/api/cr.h"
#include "dat/api/lmr.h"
#include "dat/api/rmr.h"

namespace viaduct::dat {
namespace {

std::optional<verbs::AddressBase> ToBase(DAT_VA_TYPE type) {
  switch (static_cast<unsigned>(type)) {
    case DAT_VA_TYPE_VA:
      return verbs::AddressBase::kVirtual;
    case DAT_VA_TYPE_ZB:
      return verbs::AddressBase::kZero;
    default:
      return std::nullopt;
  }
}

}  // namespace

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
                         const DAT_PVOID private_data) {
  return RejectRequest(cr_handle, private_data_size, private_data);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                          DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
                          DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
                          DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr_handle,
                          DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                          DAT_VLEN* registered_length, DAT_VADDR* registered_address) {
  return CreateRegion(
      {ia_handle, mem_type, region_description, length, pz_handle, mem_privileges, ToBase(va_type)},
      {8, lmr_handle, lmr_context, rmr_context, registered_length, registered_address});
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
                        const DAT_LMR_TRIPLET* lmr_triplet, DAT_MEM_PRIV_FLAGS mem_privileges,
                        DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
                        DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT* rmr_context) {
  return BindWindow({rmr_handle, lmr_handle, lmr_triplet, mem_privileges, ToBase(va_type),
                     ep_handle, user_cookie, completion_flags, rmr_context, 3, 8});
}

}  // namespace viaduct::dat
