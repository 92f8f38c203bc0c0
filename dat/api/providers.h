// Other people's providers: libraries that entries of dat.conf name, and tables that a program
// registers itself. Their handles are pointers whose first word is the address of their table. Our
// own handles point to unreadable memory, so reading that word tells whose a handle is.
//
// Threads: any thread may call any function. Providers are called without a lock held, except that
// dat_provider_init and dat_provider_fini run under the lock that orders loading, so they must not
// open adapters, and ia_ha_related runs under a lock that closing takes, so it must not close any.
#ifndef VIADUCT_DAT_API_PROVIDERS_H_
#define VIADUCT_DAT_API_PROVIDERS_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "dat/api/abi.h"
#include "dat/registry/registry.h"

namespace viaduct::dat {

namespace internal {
extern std::atomic<int> provider_count;
extern std::atomic<int> provider_calls;
}  // namespace internal

// False in almost every process. It costs each call one load.
inline bool AnyProvider() { return internal::provider_count.load(std::memory_order_relaxed) != 0; }

// The registered provider that `handle` belongs to; null for any other value, garbage included.
const DAT_PROVIDER* ProviderOf(DAT_HANDLE handle);

// As long as one lives, no library that registers providers is unmapped: made before ProviderOf,
// it keeps the provider's code until the provider's function has returned.
class ProviderCall {
 public:
  ProviderCall() { internal::provider_calls.fetch_add(1, std::memory_order_seq_cst); }
  ~ProviderCall() { internal::provider_calls.fetch_sub(1, std::memory_order_release); }
  ProviderCall(const ProviderCall&) = delete;
  ProviderCall& operator=(const ProviderCall&) = delete;
};

// The name, version and thread safety of an entry.
DAT_PROVIDER_INFO InfoOf(const registry::Entry& entry);
bool IsSame(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b);

// What dat_ia_openv asks for.
struct OpenRequest {
  DAT_NAME_PTR name;
  DAT_COUNT async_evd_min_qlen;
  DAT_EVD_HANDLE* async_evd_handle;
  DAT_IA_HANDLE* ia_handle;
};

// Opens through the library that the entry names, which is loaded for its first adapter. Returns
// false, and logs why, if it cannot be loaded or registers no such adapter: the caller then tries
// the next alternative. Otherwise `*result` is the provider's return value.
bool OpenOnLibrary(const registry::Entry& entry, const OpenRequest& request, DAT_RETURN* result);

// Opens through a provider that the program registered itself, or that a loaded library registered
// for a further adapter. False if there is none.
bool OpenOnRegistered(const DAT_PROVIDER_INFO& wanted, const OpenRequest& request,
                      DAT_RETURN* result);

// What the program registered itself, for dat_registry_list_providers.
std::vector<DAT_PROVIDER_INFO> RegisteredByProgram();

// Closes an adapter of a provider without allocating memory; `*result` is the provider's return
// value. False: `ia_handle` belongs to no provider. Closing the last adapter of a loaded library
// unloads the library, unless a thread is inside a provider; then its code stays.
bool CloseAdapter(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags, DAT_RETURN* result);

// Calls `ask` with an open adapter called `name` that belongs to a provider and that no thread is
// closing, if there is one. Until `ask` has returned, every thread that closes a provider's adapter
// waits.
void AskOpenAdapter(const std::string& name,
                    absl::FunctionRef<void(const DAT_PROVIDER&, DAT_IA_HANDLE)> ask);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_PROVIDERS_H_
