// What 2.0 adds to remote memory regions: those of one endpoint.
#include "dat/api/rmr.h"

namespace viaduct::dat {

DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr_handle) {
  return CreateWindow(pz_handle, verbs::WindowScope::kQueuePair, rmr_handle);
}

}  // namespace viaduct::dat
