// The exported functions that do more than pass a call on.
#include "dat/api/route.h"

namespace viaduct::dat {

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);

}  // namespace viaduct::dat

extern "C" VIADUCT_DAT_VISIBLE DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle,
                                                       DAT_CLOSE_FLAGS ia_flags) {
  using viaduct::dat::AnyProvider;
  using viaduct::dat::CloseAdapter;
  DAT_RETURN result;
  if (AnyProvider() && CloseAdapter(ia_handle, ia_flags, &result)) return result;
  return viaduct::dat::dat_ia_close(ia_handle, ia_flags);
}
