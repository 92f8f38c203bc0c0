// dat_extension_op: passes the operation to a provider or to our function. The library itself
// handles the queries that open an adapter by its name.
#include <dat2/dat_ib_extensions.h>

#include <cstdarg>

#include "dat/api/extension.h"
#include "dat/api/route.h"

namespace {

using viaduct::dat::AnyProvider;
using viaduct::dat::Failure;
using viaduct::dat::FromProvider;
using viaduct::dat::ProviderCall;
using viaduct::dat::ProviderOf;

// The adapter stays open until DAT_IB_CLOSE_QUERY_OP.
DAT_RETURN OpenQuery(va_list arguments) {
  auto* name = va_arg(arguments, DAT_NAME_PTR);
  auto* ia_handle = va_arg(arguments, DAT_HANDLE*);
  const auto ia_mask = va_arg(arguments, DAT_IA_ATTR_MASK);
  auto* ia_attributes = va_arg(arguments, DAT_IA_ATTR*);
  const auto provider_mask = va_arg(arguments, DAT_PROVIDER_ATTR_MASK);
  auto* provider_attributes = va_arg(arguments, DAT_PROVIDER_ATTR*);
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_RETURN result = dat_ia_open(name, 8, &async, ia_handle);
  if (result != DAT_SUCCESS) return result;
  result =
      dat_ia_query(*ia_handle, nullptr, ia_mask, ia_attributes, provider_mask, provider_attributes);
  if (result != DAT_SUCCESS) (void)dat_ia_close(*ia_handle, DAT_CLOSE_ABRUPT_FLAG);
  return result;
}

DAT_RETURN Dispatch(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list arguments) {
  if (static_cast<unsigned>(op) == DAT_IB_OPEN_QUERY_OP) return OpenQuery(arguments);
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
