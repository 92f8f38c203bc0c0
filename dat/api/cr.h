// What dat_cr_reject does in both versions.
#ifndef VIADUCT_DAT_API_CR_H_
#define VIADUCT_DAT_API_CR_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// Parameters 2 and 3 are the private data.
DAT_RETURN RejectRequest(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
                         const void* private_data);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_CR_H_
