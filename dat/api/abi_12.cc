// The functions whose parameters differ between the versions, with those of 1.2.
#include "dat/api/cr.h"
#include "dat/api/lmr.h"
#include "dat/api/rmr.h"

namespace viaduct::dat {

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle) { return RejectRequest(cr_handle, 0, nullptr); }

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                          DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
                          DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
                          DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context,
                          DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                          DAT_VADDR* registered_address) {
  return CreateRegion(
      {ia_handle, mem_type, region_description, length, pz_handle, mem_privileges,
       verbs::AddressBase::kVirtual},
      {7, lmr_handle, lmr_context, rmr_context, registered_length, registered_address});
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* lmr_triplet,
                        DAT_MEM_PRIV_FLAGS mem_privileges, DAT_EP_HANDLE ep_handle,
                        DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
                        DAT_RMR_CONTEXT* rmr_context) {
  return BindWindow({rmr_handle, DAT_HANDLE_NULL, lmr_triplet, mem_privileges,
                     verbs::AddressBase::kVirtual, ep_handle, user_cookie, completion_flags,
                     rmr_context, 2, 6});
}

}  // namespace viaduct::dat
