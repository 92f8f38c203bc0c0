// The exported functions that do more than pass a call on.
#include "dat/api/route.h"

namespace viaduct::dat {

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);

}  // namespace viaduct::dat

extern "C" VIADUCT_DAT_VISIBLE DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle,
                                                       DAT_CLOSE_FLAGS ia_flags) {
  using viaduct::dat::AnyProvider;
  using viaduct::dat::ProviderOf;
  if (AnyProvider()) {
    if (const DAT_PROVIDER* provider = ProviderOf(ia_handle)) {
      return viaduct::dat::CloseAdapter(*provider, ia_handle, ia_flags);
    }
  }
  return viaduct::dat::dat_ia_close(ia_handle, ia_flags);
}
