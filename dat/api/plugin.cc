// libdapl-viaduct.so.2: the engine as a provider under somebody else's registry, such as a
// distribution's own libdat2. The registry loads it for an entry of dat.conf, calls
// dat_provider_init with the entry's name and parameters, and finds our table at the first word
// of every handle that a program passes.
#include <dat2/dat_ib_extensions.h>

#include <cstdarg>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "dat/api/extension.h"
#include "dat/api/face.h"
#include "dat/api/ia.h"
#include "dat/api/ofed_ways.h"
#include "dat/api/open_query.h"
#include "dat/api/provider_table.h"
#include "dat/api/registration.h"
#include "verbs/base/held_across_forks.h"
#include "verbs/base/lock.h"
#include "verbs/base/log.h"
#include "verbs/base/made_once.h"

// The registry's functions, found among the process's symbols: the plug-in links no libdat2.
#pragma weak dat_registry_add_provider
#pragma weak dat_registry_remove_provider

#define VIADUCT_DAT_VISIBLE __attribute__((visibility("default")))

namespace viaduct::dat {

// Our functions. routes.py also declares them, for the table.
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd_handle,
                        DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR* ia_attributes,
                        DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                        DAT_PROVIDER_ATTR* provider_attributes);

namespace {

// An entry that the registry has passed to us. It is never freed, since handles lead to its table.
struct Served {
  registry::Entry entry;
  DAT_PROVIDER table = {};
};

using AllServed = std::vector<Served*>;

constinit verbs::Mutex g_lock;
const verbs::HeldAcrossForks<g_lock> g_lock_at_fork;

AllServed* MakeAllServed() { return new AllServed; }
AllServed& All() ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_lock) {
  return *verbs::MadeOnce<&MakeAllServed>();
}

Served* Find(const std::string& name, bool thread_safe) ABSL_EXCLUSIVE_LOCKS_REQUIRED(g_lock) {
  for (Served* served : All()) {
    if (served->entry.name == name && served->entry.thread_safe == thread_safe) return served;
  }
  return nullptr;
}

// The table of all objects except adapters, to which new handles point from then on. Throws
// std::bad_alloc; the next call tries again.
const DAT_PROVIDER* MakeCommonTable();

// The registry passes only a name, so each kind of entry has a function of its own.
template <bool kThreadSafe>
DAT_RETURN Open(const DAT_NAME_PTR ia_name, DAT_COUNT async_evd_min_qlen,
                DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle) {
  return Control([&]() -> DAT_RETURN {
    if (ia_name == nullptr) return BadParameter(1);
    if (async_evd_handle == nullptr) return BadParameter(3);
    if (ia_handle == nullptr) return BadParameter(4);
    verbs::LogSettingProblems();
    const Served* served;
    {
      verbs::MutexLock lock(&g_lock);
      served = Find(ia_name, kThreadSafe);
    }
    if (served == nullptr) return Failure(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    // Not by Init, whose failure a registry does not hear of and which it does not call again.
    (void)verbs::MadeOnce<&MakeCommonTable>();
    const DAT_RETURN result =
        OpenOnEngine(served->entry, async_evd_min_qlen, async_evd_handle, ia_handle);
    // When it closes an adapter, the registry looks for the name in the adapter's table.
    if (result == DAT_SUCCESS) core::HandleTable::SetFirstWord(*ia_handle, &served->table);
    return result;
  });
}

// An adapter of the engine can stand in only for itself.
DAT_RETURN IsRelated(DAT_IA_HANDLE ia_handle, const DAT_NAME_PTR name, DAT_BOOLEAN* answer) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (name == nullptr) return BadParameter(2);
    if (answer == nullptr) return BadParameter(3);
    *answer = ToBoolean(EntryOf(*adapter).name == name);
    return DAT_SUCCESS;
  });
}

// Under another registry dat_extension_op passes the name of dat_ib_open_query as the handle.
template <bool kThreadSafe>
DAT_RETURN ExtendedOp(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list arguments) {
  if (static_cast<unsigned>(op) == DAT_IB_OPEN_QUERY_OP) {
    const auto open = [handle](DAT_COUNT length, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia) {
      return Open<kThreadSafe>(static_cast<DAT_NAME_PTR>(handle), length, async, ia);
    };
    return OpenQuery(arguments, open, dat::dat_ia_query, CloseAsOfed);
  }
  if (static_cast<unsigned>(op) == DAT_IB_CLOSE_QUERY_OP) {
    return CloseAsOfed(handle, DAT_CLOSE_ABRUPT_FLAG);
  }
  return HandleExtendedOp(handle, op, arguments);
}

void SetTable(const char* name, bool thread_safe, DAT_PROVIDER* table) {
  *table = {};
  FillTable(table);
  table->device_name = name;
  table->ia_open_func = thread_safe ? Open<true> : Open<false>;
  table->ia_ha_related_func = IsRelated;
  table->handle_extendedop_func = thread_safe ? ExtendedOp<true> : ExtendedOp<false>;
  TakeOfedWays(table);
}

const DAT_PROVIDER* MakeCommonTable() {
  auto made = std::make_unique<DAT_PROVIDER>();
  SetTable("viaduct", false, made.get());
  if (!core::HandleTable::ShowFirstWord(made.get())) throw std::bad_alloc();
  return made.release();
}

void LogError(const std::string& message) {
  if (verbs::LogEnabled(verbs::LogLevel::kError)) {
    verbs::WriteLog(verbs::LogLevel::kError, "libdapl-viaduct.so.2: " + message);
  }
}

void Init(const DAT_PROVIDER_INFO& info, const char* parameters) {
  if (info.dapl_version_major != kMajor || info.dapl_version_minor != kMinor) {
    return LogError(std::string(info.ia_name) + ": only uDAPL 2.0 is served");
  }
  if (dat_registry_add_provider == nullptr) {
    return LogError("no registry (libdat2.so.2) among the symbols of this process");
  }
  const bool thread_safe = info.is_thread_safe != DAT_FALSE;
  Served* served;
  {
    verbs::MutexLock lock(&g_lock);
    served = Find(info.ia_name, thread_safe);
    if (served == nullptr) {
      served = new Served;
      served->entry.name = info.ia_name;
      served->entry.major = info.dapl_version_major;
      served->entry.minor = info.dapl_version_minor;
      served->entry.thread_safe = thread_safe;
      SetTable(served->entry.name.c_str(), thread_safe, &served->table);
      All().push_back(served);
    }
    // For a known entry dat_provider_fini was called in between, so no adapter of it is open.
    served->entry.parameters = parameters != nullptr ? parameters : "";
  }
  const DAT_RETURN added = dat_registry_add_provider(&served->table, &info);
  if (added != DAT_SUCCESS) LogError(std::string(info.ia_name) + ": the registry refused it");
}

}  // namespace

DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter) {
  return RegistrysHandle(adapter.handle());
}

bool ShownThreadSafety(const core::InterfaceAdapter& adapter) {
  return EntryOf(adapter).thread_safe;
}

bool AnswersBare() { return true; }

}  // namespace viaduct::dat

extern "C" VIADUCT_DAT_VISIBLE void dat_provider_init(const DAT_PROVIDER_INFO* info,
                                                      const char* parameters) {
  if (info == nullptr) return;
  const DAT_RETURN result = viaduct::dat::Control([&]() -> DAT_RETURN {
    viaduct::dat::Init(*info, parameters);
    return DAT_SUCCESS;
  });
  if (DAT_GET_TYPE(result) == DAT_INSUFFICIENT_RESOURCES) {
    viaduct::verbs::WriteLog(viaduct::verbs::LogLevel::kError,
                             "libdapl-viaduct.so.2: out of memory");
  }
}

extern "C" VIADUCT_DAT_VISIBLE void dat_provider_fini(const DAT_PROVIDER_INFO* info) {
  if (info == nullptr || dat_registry_remove_provider == nullptr) return;
  (void)viaduct::dat::Control([&]() -> DAT_RETURN {
    viaduct::dat::Served* served;
    {
      viaduct::verbs::MutexLock lock(&viaduct::dat::g_lock);
      served = viaduct::dat::Find(info->ia_name, info->is_thread_safe != DAT_FALSE);
    }
    if (served != nullptr) (void)dat_registry_remove_provider(&served->table, info);
    return DAT_SUCCESS;
  });
}
