// The functions whose parameters are those of 2.0 alone.
#include "dat/api/cr.h"
#include "dat/api/face.h"
#include "dat/api/lmr.h"

namespace viaduct::dat {

VIADUCT_DAT_EXPORT DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
                                            const DAT_PVOID private_data) {
  return RejectRequest(cr_handle, private_data_size, private_data);
}

VIADUCT_DAT_EXPORT DAT_RETURN dat_lmr_create(
    DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region_description,
    DAT_VLEN length, DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
    DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context,
    DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length, DAT_VADDR* registered_address) {
  if (va_type == DAT_VA_TYPE_ZB) return Failure(DAT_MODEL_NOT_SUPPORTED);
  if (va_type != DAT_VA_TYPE_VA) return BadParameter(7);
  return CreateRegion(
      {ia_handle, mem_type, region_description, length, pz_handle, mem_privileges},
      {8, lmr_handle, lmr_context, rmr_context, registered_length, registered_address});
}

}  // namespace viaduct::dat
