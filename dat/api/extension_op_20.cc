// dat_extension_op: passes the operation to a provider or to our function. The library itself
// handles the queries that open an adapter by its name.
#include <dat2/dat_ib_extensions.h>

#include <cstdarg>

#include "dat/api/extension.h"
#include "dat/api/open_query.h"
#include "dat/api/route.h"

namespace {

using viaduct::dat::AnyProvider;
using viaduct::dat::Failure;
using viaduct::dat::FromProvider;
using viaduct::dat::ProviderCall;
using viaduct::dat::ProviderOf;

DAT_RETURN Dispatch(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list arguments) {
  if (static_cast<unsigned>(op) == DAT_IB_OPEN_QUERY_OP) {
    auto* const name = va_arg(arguments, DAT_NAME_PTR);
    const auto open = [name](DAT_COUNT length, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia) {
      return dat_ia_open(name, length, async, ia);
    };
    return viaduct::dat::OpenQuery(arguments, open, dat_ia_query, dat_ia_close);
  }
  if (static_cast<unsigned>(op) == DAT_IB_CLOSE_QUERY_OP) {
    return dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG);
  }
  if (AnyProvider()) {
    const ProviderCall call;
    if (const DAT_PROVIDER* provider = ProviderOf(handle)) {
      if (provider->handle_extendedop_func == nullptr) return Failure(DAT_NOT_IMPLEMENTED);
      return FromProvider(provider->handle_extendedop_func(handle, op, arguments));
    }
  }
  return viaduct::dat::HandleExtendedOp(handle, op, arguments);
}

}  // namespace

extern "C" VIADUCT_DAT_VISIBLE DAT_RETURN dat_extension_op(DAT_HANDLE dat_handle,
                                                           DAT_EXTENDED_OP extended_op, ...) {
  va_list arguments;
  va_start(arguments, extended_op);
  const DAT_RETURN result = Dispatch(dat_handle, extended_op, arguments);
  va_end(arguments);
  return result;
}
