// The exported functions that do more than pass a call on.
#include "dat/api/route.h"

#include "verbs/base/settings.h"

namespace viaduct::dat {

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event);
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);

namespace {

// Debian's dtest and others poll `while (dat_evd_dequeue(...) == DAT_QUEUE_EMPTY)`.
[[gnu::noinline]] DAT_RETURN EmptyAsSet() {
  static const bool bare = verbs::ChoiceSetting(verbs::SettingId::kQueueEmpty) == "bare";
  return bare ? DAT_RETURN{DAT_QUEUE_EMPTY} : Failure(DAT_QUEUE_EMPTY);
}

DAT_RETURN DequeueAsSet(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  const DAT_RETURN result = dat::dat_evd_dequeue(evd_handle, event);
  return result == Failure(DAT_QUEUE_EMPTY) ? EmptyAsSet() : result;
}

}  // namespace
}  // namespace viaduct::dat

extern "C" VIADUCT_DAT_VISIBLE DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle,
                                                          DAT_EVENT* event) {
  return viaduct::dat::Route<&dat_provider::evd_dequeue_func, &viaduct::dat::DequeueAsSet>(
      evd_handle, event);
}

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
