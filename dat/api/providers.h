// Other people's providers: libraries that entries of dat.conf name, and tables that a program
// registers itself. What they hand out are pointers whose first word is the address of their
// table; ours never are readable there, so one look tells whose a handle is.
//
// Threads: any function from any thread. Providers are called without a lock, with two exceptions:
// dat_provider_init and dat_provider_fini run under the lock that orders loading and must not open
// adapters; a question to an open adapter runs under the lock that closing takes and must not close
// one.
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
}  // namespace internal

// False in almost every process: one load on every call's way.
inline bool AnyProvider() { return internal::provider_count.load(std::memory_order_relaxed) != 0; }

// The registered provider whose object `handle` is; null for all else, garbage included.
const DAT_PROVIDER* ProviderOf(DAT_HANDLE handle);

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

// Opens through the library that the entry names, which is loaded for its first adapter. False,
// with a line in the log, if it cannot be loaded or registers no such adapter: the next
// alternative's turn. Else `*result` is the provider's answer.
bool OpenOnLibrary(const registry::Entry& entry, const OpenRequest& request, DAT_RETURN* result);

// Opens through a provider that the program registered itself. False if there is none.
bool OpenOnRegistered(const DAT_PROVIDER_INFO& wanted, const OpenRequest& request,
                      DAT_RETURN* result);

// What the program registered itself, for dat_registry_list_providers.
std::vector<DAT_PROVIDER_INFO> RegisteredByProgram();

// Closes an adapter of `provider`, and needs no memory. The last one of a loaded library unloads
// it.
DAT_RETURN CloseAdapter(const DAT_PROVIDER& provider, DAT_IA_HANDLE ia_handle,
                        DAT_CLOSE_FLAGS flags);

// Calls `ask` with an open adapter of that name that belongs to a provider, if there is one. Until
// `ask` returns, a thread that closes a provider's adapter waits.
void AskOpenAdapter(const std::string& name,
                    absl::FunctionRef<void(const DAT_PROVIDER&, DAT_IA_HANDLE)> ask);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_PROVIDERS_H_
