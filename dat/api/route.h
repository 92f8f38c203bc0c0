// The first step of every call of a program: passing it to the provider that the handle belongs to.
// routes.py generates the exported functions with it.
#ifndef VIADUCT_DAT_API_ROUTE_H_
#define VIADUCT_DAT_API_ROUTE_H_

#include "dat/api/providers.h"
#include "dat/api/registration.h"
#include "dat/api/return_code.h"

#define VIADUCT_DAT_VISIBLE __attribute__((visibility("default")))

namespace viaduct::dat {

// Calls `kSlot` of the provider's table or, for a handle that is no provider's, our function.
template <auto kSlot, auto kOurs, typename... Args>
[[gnu::noinline]] DAT_RETURN RouteByHandle(DAT_HANDLE handle, Args... args) {
  {
    const ProviderCall call;
    if (const DAT_PROVIDER* provider = ProviderOf(handle)) {
      const auto function = provider->*kSlot;
      if (function == nullptr) return Failure(DAT_NOT_IMPLEMENTED);
      return FromProvider(function(handle, args...));
    }
  }
  return kOurs(handle, args...);
}

// The same. Without providers, as usual, it is a comparison and a jump.
template <auto kSlot, auto kOurs, typename... Args>
DAT_RETURN Route(DAT_HANDLE handle, Args... args) {
  if (AnyProvider()) [[unlikely]]
    return RouteByHandle<kSlot, kOurs>(handle, args...);
  return kOurs(handle, args...);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ROUTE_H_
