// What both versions' dat_lmr_create do.
#ifndef VIADUCT_DAT_API_LMR_H_
#define VIADUCT_DAT_API_LMR_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// Parameters 1 to 6 are the same in both versions.
struct RegionRequest {
  DAT_IA_HANDLE ia;
  DAT_MEM_TYPE type;
  DAT_REGION_DESCRIPTION description;
  DAT_VLEN length;
  DAT_PZ_HANDLE zone;
  DAT_MEM_PRIV_FLAGS privileges;
};

// Each may be NULL but the first, which is parameter `first_argument`.
struct RegionResults {
  unsigned first_argument;
  DAT_LMR_HANDLE* lmr;
  DAT_LMR_CONTEXT* lmr_context;
  DAT_RMR_CONTEXT* rmr_context;
  DAT_VLEN* registered_size;
  DAT_VADDR* registered_address;
};

DAT_RETURN CreateRegion(const RegionRequest& request, const RegionResults& results);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_LMR_H_
