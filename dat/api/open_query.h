// dat_ib_open_query, which opens an adapter to query it: what our libdat2 and our plug-in share.
#ifndef VIADUCT_DAT_API_OPEN_QUERY_H_
#define VIADUCT_DAT_API_OPEN_QUERY_H_

#include <cstdarg>

#include "dat/api/abi.h"

namespace viaduct::dat {

// `arguments` are those behind the adapter's name. `open` takes what DAT_IA_OPEN_FUNC takes behind
// the name; `query` and `close` are dat_ia_query and dat_ia_close. The adapter stays open until
// dat_ib_close_query, unless the query fails.
template <typename Open, typename Query, typename Close>
DAT_RETURN OpenQuery(va_list arguments, const Open& open, const Query& query, const Close& close) {
  auto* ia_handle = va_arg(arguments, DAT_HANDLE*);
  const auto ia_mask = va_arg(arguments, DAT_IA_ATTR_MASK);
  auto* ia_attributes = va_arg(arguments, DAT_IA_ATTR*);
  const auto provider_mask = va_arg(arguments, DAT_PROVIDER_ATTR_MASK);
  auto* provider_attributes = va_arg(arguments, DAT_PROVIDER_ATTR*);
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_RETURN result = open(8, &async, ia_handle);
  if (result != DAT_SUCCESS) return result;
  result = query(*ia_handle, nullptr, ia_mask, ia_attributes, provider_mask, provider_attributes);
  if (result != DAT_SUCCESS) (void)close(*ia_handle, DAT_CLOSE_ABRUPT_FLAG);
  return result;
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_OPEN_QUERY_H_
