// The functions whose parameters are those of 1.2 alone.
#include "dat/api/cr.h"
#include "dat/api/face.h"
#include "dat/api/lmr.h"

namespace viaduct::dat {

VIADUCT_DAT_EXPORT DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle) {
  return RejectRequest(cr_handle, 0, nullptr);
}

VIADUCT_DAT_EXPORT DAT_RETURN dat_lmr_create(
    DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region_description,
    DAT_VLEN length, DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
    DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
    DAT_VLEN* registered_length, DAT_VADDR* registered_address) {
  return CreateRegion(
      {ia_handle, mem_type, region_description, length, pz_handle, mem_privileges},
      {7, lmr_handle, lmr_context, rmr_context, registered_length, registered_address});
}

}  // namespace viaduct::dat
