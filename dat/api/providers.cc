#include "dat/api/providers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/held_across_forks.h"
#include "verbs/base/lock.h"
#include "verbs/base/log.h"
#include "verbs/base/made_once.h"

namespace viaduct::dat {

namespace internal {
constinit std::atomic<int> provider_count{0};
constinit std::atomic<int> provider_calls{0};
}  // namespace internal

namespace {

// A provider's table, with the name, version and thread safety that it was registered for.
struct Registration {
  const DAT_PROVIDER* provider = nullptr;
  DAT_PROVIDER_INFO info;
  int adapters = 0;                        // open, or being opened
  const registry::Entry* entry = nullptr;  // whose library registered it; null: the program
};

// The library of one entry.
struct Library {
  void* handle = nullptr;  // of dlopen
  DAT_PROVIDER_FINI_FUNC fini = nullptr;
  int adapters = 0;
  bool stays = false;  // it has no init, and registers only when it is loaded first
};

struct Adapter {
  const DAT_PROVIDER* provider = nullptr;
  DAT_PROVIDER_INFO info;
  const registry::Entry* entry = nullptr;  // null: registered by the program
  int closing = 0;                         // threads inside CloseAdapter
  bool closed = false;                     // by one of them
};

// A provider may use the address of an adapter again as soon as it has closed it: of several with
// one handle the newest, which is the last one, is open.
using Adapters = std::multimap<DAT_IA_HANDLE, Adapter>;

// Orders loading and unloading. Taken before g_lock, which providers take when they call the
// registry.
constinit verbs::Mutex g_loading;
// Held while a provider is asked about an open adapter, so that nobody closes it meanwhile. Taken
// before g_lock.
constinit verbs::Mutex g_asking;
constinit verbs::Mutex g_lock;

struct Providers {
  std::map<const registry::Entry*, Library> libraries ABSL_GUARDED_BY(g_loading);
  std::vector<Registration> registrations ABSL_GUARDED_BY(g_lock);
  Adapters adapters ABSL_GUARDED_BY(g_lock);
};

// The entry whose library the thread `g_loader` is loading.
constinit const registry::Entry* g_loading_entry ABSL_GUARDED_BY(g_lock) = nullptr;
constinit pthread_t g_loader ABSL_GUARDED_BY(g_lock) = {};

Providers* MakeProviders() { return new Providers; }
Providers& All() { return *verbs::MadeOnce<&MakeProviders>(); }

const verbs::HeldAcrossForks<g_lock> g_lock_at_fork;

// In a forked child, a library that another thread was loading or unloading stays as that thread
// left it. The thread itself is not in the child, nor is one that was asking: the child gets new
// locks.
const verbs::AtFork g_calling_at_fork(nullptr, nullptr, [] {
  new (&g_loading) verbs::Mutex;
  new (&g_asking) verbs::Mutex;
  verbs::MutexLock lock(&g_lock);  // g_lock_at_fork, which comes first, has released it
  if (pthread_equal(g_loader, pthread_self()) == 0) g_loading_entry = nullptr;
});

bool IsEnginesName(const DAT_PROVIDER_INFO& info) {
  for (const registry::Entry& entry : registry::Registry::Get().entries()) {
    if (IsSame(InfoOf(entry), info) && registry::IsEngines(entry)) return true;
  }
  return false;
}

Registration* Find(Providers& all, const DAT_PROVIDER_INFO& info)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_lock) {
  for (Registration& registration : all.registrations) {
    if (IsSame(registration.info, info)) return &registration;
  }
  return nullptr;
}

// The entry whose library is registering in this thread; null: the program itself is.
const registry::Entry* EntryBeingLoaded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_lock) {
  return pthread_equal(g_loader, pthread_self()) != 0 ? g_loading_entry : nullptr;
}

// Returns false if the address cannot be read. One system call, which cannot fault.
bool ReadWord(const void* address, const void** word) {
  const iovec local = {word, sizeof *word};
  const iovec remote = {const_cast<void*>(address), sizeof *word};
  return process_vm_readv(gettid(), &local, 1, &remote, 1, 0) == sizeof *word;
}

void Warn(const registry::Entry& entry, const std::string& what) {
  if (!verbs::LogEnabled(verbs::LogLevel::kWarn)) return;
  std::string line =
      "adapter " + entry.name + " (dat.conf line " + std::to_string(entry.line) + "): " + what;
  if (registry::IsOfeds(entry)) {
    try {
      line += "; for this library's own engine write: " + registry::LineOfOurs(entry);
    } catch (const std::bad_alloc&) {  // without the advice: the next alternative may do
    }
  }
  verbs::WriteLog(verbs::LogLevel::kWarn, line);
}

// Lets what registers in this thread be the entry's library, whose constructors may do it, too.
class Registering {
 public:
  explicit Registering(const registry::Entry& entry) {
    verbs::MutexLock lock(&g_lock);
    g_loading_entry = &entry;
    g_loader = pthread_self();
  }
  ~Registering() {
    verbs::MutexLock lock(&g_lock);
    g_loading_entry = nullptr;
  }
  Registering(const Registering&) = delete;
  Registering& operator=(const Registering&) = delete;
};

bool HasRegistered(Providers& all, const registry::Entry& entry) {
  verbs::MutexLock lock(&g_lock);
  const Registration* const registration = Find(all, InfoOf(entry));
  return registration != nullptr && registration->entry == &entry;
}

void Unload(Providers& all, const registry::Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_loading) {
  const DAT_PROVIDER_INFO info = InfoOf(entry);
  // Forgotten first: a child that is forked meanwhile loads the library anew.
  const Library library = std::exchange(all.libraries[&entry], Library());
  if (library.fini != nullptr) library.fini(&info);
  {
    // Removes what fini has left: its table goes with the library.
    verbs::MutexLock lock(&g_lock);
    const auto left = std::erase_if(all.registrations, [&](const Registration& registration) {
      return registration.entry == &entry;
    });
    internal::provider_count.fetch_sub(static_cast<int>(left), std::memory_order_relaxed);
  }
  // A thread may still be inside, such as one whose wait the last close has ended. The library then
  // stays in the process. No other thread can enter: the table is not registered any more.
  if (internal::provider_calls.load(std::memory_order_seq_cst) == 0) dlclose(library.handle);
}

// Loads the library of an entry, of which none is loaded. Like OFED's registry it can do without
// dat_provider_init if something in it registers the adapter all the same.
bool Load(Providers& all, const registry::Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_loading) {
  Library& library = all.libraries[&entry];  // while memory may run out
  const Registering registering(entry);
  void* const handle = dlopen(entry.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    Warn(entry, reason != nullptr ? reason : entry.library);
    return false;
  }
  const auto init =
      reinterpret_cast<DAT_PROVIDER_INIT_FUNC>(dlsym(handle, DAT_PROVIDER_INIT_FUNC_STR));
  const auto fini =
      reinterpret_cast<DAT_PROVIDER_FINI_FUNC>(dlsym(handle, DAT_PROVIDER_FINI_FUNC_STR));
  const DAT_PROVIDER_INFO info = InfoOf(entry);
  if (init != nullptr) init(&info, entry.parameters.c_str());
  library = {.handle = handle, .fini = fini, .stays = init == nullptr};
  if (HasRegistered(all, entry)) return true;
  Warn(entry, entry.library + (init == nullptr ? " is no provider: it lacks dat_provider_init"
                                               : " did not register this adapter"));
  Unload(all, entry);
  return false;
}

// Loads the entry's library unless it is loaded already, and counts one more adapter.
bool Hold(const registry::Entry& entry) {
  Providers& all = All();
  verbs::MutexLock loading(&g_loading);
  if (all.libraries[&entry].handle == nullptr && !Load(all, entry)) return false;
  ++all.libraries[&entry].adapters;
  return true;
}

// Counts one adapter less, and unloads the library after the last one, unless it stays.
void Release(const registry::Entry& entry) {
  Providers& all = All();
  verbs::MutexLock loading(&g_loading);
  Library& library = all.libraries[&entry];
  if (--library.adapters == 0 && !library.stays) Unload(all, entry);
}

// Counts one more adapter of the registration and returns its table; null: there is none.
const DAT_PROVIDER* HoldRegistration(const DAT_PROVIDER_INFO& info) {
  Providers& all = All();
  verbs::MutexLock lock(&g_lock);
  Registration* const registration = Find(all, info);
  if (registration == nullptr) return nullptr;
  ++registration->adapters;
  return registration->provider;
}

void ReleaseRegistration(const DAT_PROVIDER_INFO& info) {
  Providers& all = All();
  verbs::MutexLock lock(&g_lock);
  Registration* const registration = Find(all, info);
  if (registration != nullptr) --registration->adapters;
}

// Undoes the counting of an adapter that was not opened, or has been closed.
void GiveBack(const Adapter& adapter) {
  ReleaseRegistration(adapter.info);
  if (adapter.entry != nullptr) Release(*adapter.entry);
}

// The adapter that has this handle now; end() if there is none.
Adapters::iterator Newest(Adapters& adapters, DAT_IA_HANDLE handle)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_lock) {
  const auto [first, behind] = adapters.equal_range(handle);
  return first == behind ? adapters.end() : std::prev(behind);
}

// The map node of an adapter that is to be opened. It is allocated before anything is counted, so
// that recording an adapter that the provider has opened needs no memory.
Adapters::node_type NewPlace() {
  Adapters one;
  one.emplace(DAT_HANDLE_NULL, Adapter());
  return one.extract(one.begin());
}

// Calls the provider's ia_open. The adapter is counted already; if opening fails, that is undone.
DAT_RETURN Open(Adapters::node_type place, const OpenRequest& request) {
  const Adapter& adapter = place.mapped();
  const DAT_EVD_HANDLE async = *request.async_evd_handle;
  const bool own_async = async != DAT_HANDLE_NULL && async != DAT_EVD_ASYNC_EXISTS;
  DAT_RETURN result = BadHandle(DAT_INVALID_HANDLE_EVD_ASYNC);
  if (adapter.provider->ia_open_func == nullptr) {
    result = Failure(DAT_NOT_IMPLEMENTED);
  } else if (!own_async || ProviderOf(async) == adapter.provider) {
    result = FromProvider(adapter.provider->ia_open_func(
        request.name, request.async_evd_min_qlen, request.async_evd_handle, request.ia_handle));
  }
  if (result == DAT_SUCCESS) {
    place.key() = *request.ia_handle;
    verbs::MutexLock lock(&g_lock);
    All().adapters.insert(std::move(place));
  } else {
    GiveBack(adapter);
  }
  return result;
}

// Opens through the provider that is registered as `info`. The library of `entry` (null: none) is
// loaded first, and stays loaded as long as the adapter is open. False: there is no such provider.
bool OpenOn(const DAT_PROVIDER_INFO& info, const registry::Entry* entry, const OpenRequest& request,
            DAT_RETURN* result) {
  Adapters::node_type place = NewPlace();
  if (entry != nullptr && !Hold(*entry)) return false;
  const DAT_PROVIDER* const provider = HoldRegistration(info);
  if (provider == nullptr) {
    if (entry != nullptr) Release(*entry);
    return false;
  }
  place.mapped() = {.provider = provider, .info = info, .entry = entry};
  *result = Open(std::move(place), request);
  return true;
}

}  // namespace

bool IsSame(const DAT_PROVIDER_INFO& a, const DAT_PROVIDER_INFO& b) {
  return strcmp(a.ia_name, b.ia_name) == 0 && a.dapl_version_major == b.dapl_version_major &&
         a.dapl_version_minor == b.dapl_version_minor &&
         (a.is_thread_safe != DAT_FALSE) == (b.is_thread_safe != DAT_FALSE);
}

DAT_PROVIDER_INFO InfoOf(const registry::Entry& entry) {
  DAT_PROVIDER_INFO info = {};
  snprintf(info.ia_name, sizeof info.ia_name, "%s", entry.name.c_str());
  info.dapl_version_major = entry.major;
  info.dapl_version_minor = entry.minor;
  info.is_thread_safe = ToBoolean(entry.thread_safe);
  return info;
}

const DAT_PROVIDER* ProviderOf(DAT_HANDLE handle) {
  const void* word;
  if (handle == nullptr || !ReadWord(handle, &word)) return nullptr;
  verbs::MutexLock lock(&g_lock);
  for (const Registration& registration : All().registrations) {
    if (registration.provider == word) return registration.provider;
  }
  return nullptr;
}

bool OpenOnLibrary(const registry::Entry& entry, const OpenRequest& request, DAT_RETURN* result) {
  return OpenOn(InfoOf(entry), &entry, request, result);
}

bool OpenOnRegistered(const DAT_PROVIDER_INFO& wanted, const OpenRequest& request,
                      DAT_RETURN* result) {
  DAT_PROVIDER_INFO info = wanted;
  const registry::Entry* entry;
  {
    verbs::MutexLock lock(&g_lock);
    const Registration* best = nullptr;
    for (const Registration& registration : All().registrations) {
      info.dapl_version_minor = registration.info.dapl_version_minor;
      if (!IsSame(registration.info, info)) continue;
      if (info.dapl_version_minor < wanted.dapl_version_minor) continue;
      if (best == nullptr || info.dapl_version_minor < best->info.dapl_version_minor) {
        best = &registration;
      }
    }
    if (best == nullptr) return false;
    info = best->info;
    entry = best->entry;
  }
  return OpenOn(info, entry, request, result);
}

std::vector<DAT_PROVIDER_INFO> RegisteredByProgram() {
  std::vector<DAT_PROVIDER_INFO> infos;
  verbs::MutexLock lock(&g_lock);
  for (const Registration& registration : All().registrations) {
    if (registration.entry == nullptr) infos.push_back(registration.info);
  }
  return infos;
}

bool CloseAdapter(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags, DAT_RETURN* result) {
  std::optional<ProviderCall> inside(std::in_place);
  const DAT_PROVIDER* const provider = ProviderOf(ia_handle);
  if (provider == nullptr) return false;
  if (provider->ia_close_func == nullptr) {
    *result = Failure(DAT_NOT_IMPLEMENTED);
    return true;
  }
  Adapters::iterator adapter;
  bool known;
  {
    verbs::MutexLock asking(&g_asking);
    verbs::MutexLock lock(&g_lock);
    Adapters& adapters = All().adapters;
    adapter = Newest(adapters, ia_handle);
    known = adapter != adapters.end();
    if (known) ++adapter->second.closing;
  }
  *result = FromProvider(provider->ia_close_func(ia_handle, flags));
  inside.reset();  // the last one to leave is to find nobody inside when it unloads
  if (!known) return true;
  // Of several threads that close it, one is successful, and the last one to return gives back.
  Adapters::node_type place;
  {
    verbs::MutexLock lock(&g_lock);
    Adapter& left = adapter->second;
    left.closed = left.closed || *result == DAT_SUCCESS;
    if (--left.closing == 0 && left.closed) place = All().adapters.extract(adapter);
  }
  if (!place.empty()) GiveBack(place.mapped());
  return true;
}

void AskOpenAdapter(const std::string& name,
                    absl::FunctionRef<void(const DAT_PROVIDER&, DAT_IA_HANDLE)> ask) {
  verbs::MutexLock asking(&g_asking);
  DAT_IA_HANDLE handle = DAT_HANDLE_NULL;
  const DAT_PROVIDER* provider = nullptr;
  {
    verbs::MutexLock lock(&g_lock);
    for (const auto& [open, adapter] : All().adapters) {
      if (adapter.closing != 0 || name != adapter.info.ia_name) continue;
      handle = open;
      provider = adapter.provider;
      break;
    }
  }
  if (provider != nullptr) ask(*provider, handle);
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider,
                                     const DAT_PROVIDER_INFO* provider_info) {
  return Control([&]() -> DAT_RETURN {
    if (provider == nullptr) return BadParameter(1);
    if (provider_info == nullptr || provider_info->dapl_version_major != kMajor ||
        strnlen(provider_info->ia_name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH) {
      return BadParameter(2);
    }
    const bool is_engines = IsEnginesName(*provider_info);
    Providers& all = All();
    verbs::MutexLock lock(&g_lock);
    const registry::Entry* const entry = EntryBeingLoaded();
    // `entry` may be an alternative to one that the engine serves.
    const bool is_entrys = entry != nullptr && IsSame(InfoOf(*entry), *provider_info);
    if ((is_engines && !is_entrys) || Find(all, *provider_info) != nullptr) {
      return Failure(DAT_PROVIDER_ALREADY_REGISTERED);
    }
    all.registrations.push_back({provider, *provider_info, 0, entry});
    internal::provider_count.fetch_add(1, std::memory_order_relaxed);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER* provider,
                                        const DAT_PROVIDER_INFO* provider_info) {
  return Control([&]() -> DAT_RETURN {
    if (provider == nullptr) return BadParameter(1);
    if (provider_info == nullptr) return BadParameter(2);
    Providers& all = All();
    verbs::MutexLock lock(&g_lock);
    for (size_t i = 0; i < all.registrations.size(); ++i) {
      const Registration& registration = all.registrations[i];
      if (registration.provider != provider || !IsSame(registration.info, *provider_info)) continue;
      if (registration.adapters != 0) return Failure(DAT_PROVIDER_IN_USE);
      all.registrations.erase(all.registrations.begin() + static_cast<ptrdiff_t>(i));
      internal::provider_count.fetch_sub(1, std::memory_order_relaxed);
      return DAT_SUCCESS;
    }
    return Failure(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  });
}

// Consumers get a provider's own pointer as an adapter's handle, so both forms are the same.
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle) {
  return Control([&]() -> DAT_RETURN {
    if (ia_handle == nullptr) return BadParameter(2);
    if (core::HandleTable::TypeOf(handle) != core::ObjectType::kAdapter &&
        ProviderOf(handle) == nullptr) {
      return kBadIa;
    }
    *ia_handle = handle;
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
