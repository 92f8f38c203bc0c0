#ifndef VIADUCT_TESTS_PROVIDERS_OWN_PROVIDER_H_
#define VIADUCT_TESTS_PROVIDERS_OWN_PROVIDER_H_

#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>

#include "tests/providers/registry.h"

namespace viaduct::tests {

// A provider of the program's own. It takes no memory itself, and its graceful close finds objects
// left. One in a process.
struct OwnProvider {
  OwnProvider() {
    own = this;
    table.device_name = "own";
    table.ia_open_func = Open;
    table.ia_close_func = Close;
  }
  static DAT_RETURN Open(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE* ia) {
    ++own->adapters;
    *ia = &own->adapter;
    return DAT_SUCCESS;
  }
  static DAT_RETURN Close(DAT_IA_HANDLE, DAT_CLOSE_FLAGS flags) {
    if (flags == DAT_CLOSE_GRACEFUL_FLAG) return Error(DAT_INVALID_STATE);
    --own->adapters;
    return DAT_SUCCESS;
  }

  static inline OwnProvider* own;
  DAT_PROVIDER table = {};
  DAT_PROVIDER_INFO info = {"own", 2, 0, DAT_FALSE};
  const DAT_PROVIDER* adapter = &table;
  int adapters = 0;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_PROVIDERS_OWN_PROVIDER_H_
