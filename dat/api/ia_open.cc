// Finds the registry's entry for an adapter's name, and opens it.
#include <cstdio>
#include <cstring>

#include "dat/api/face.h"
#include "dat/api/ia.h"
#include "dat/api/providers.h"
#include "verbs/base/log.h"

namespace viaduct::dat {
namespace {

DAT_RETURN FindEntries(const char* name, uint32_t major, uint32_t minor, bool thread_safe,
                       std::vector<const registry::Entry*>* entries) {
  switch (registry::Registry::Get().Find(name, major, minor, thread_safe, entries)) {
    case registry::Found::kYes:
      // This library does not know the other version's structures.
      return major == kMajor ? DAT_RETURN{DAT_SUCCESS}
                             : Failure(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
    case registry::Found::kNoName:
      return Failure(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    case registry::Found::kNoMajor:
      return Failure(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
    case registry::Found::kNoMinor:
      return Failure(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
    case registry::Found::kNoThreadSafety:
      return Failure(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
  }
  return Failure(DAT_INTERNAL_ERROR);
}

}  // namespace

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR ia_name, DAT_COUNT async_evd_min_qlen,
                        DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle,
                        DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety) {
  return Control([&]() -> DAT_RETURN {
    if (ia_name == nullptr || strnlen(ia_name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH) {
      return BadParameter(1);
    }
    if (async_evd_handle == nullptr) return BadParameter(3);
    if (ia_handle == nullptr) return BadParameter(4);
    verbs::LogSettingProblems();
    std::vector<const registry::Entry*> entries;
    const bool thread_safe = thread_safety != DAT_FALSE;
    const DAT_RETURN found = FindEntries(ia_name, dat_major, dat_minor, thread_safe, &entries);
    const OpenRequest request = {ia_name, async_evd_min_qlen, async_evd_handle, ia_handle};
    DAT_RETURN result = DAT_SUCCESS;
    for (const registry::Entry* entry : entries) {
      if (entry->major != kMajor) break;
      if (registry::IsEngines(*entry)) {
        return OpenOnEngine(*entry, async_evd_min_qlen, async_evd_handle, ia_handle);
      }
      if (OpenOnLibrary(*entry, request, &result)) return result;
    }
    DAT_PROVIDER_INFO wanted = {};
    snprintf(wanted.ia_name, sizeof wanted.ia_name, "%s", ia_name);
    wanted.dapl_version_major = dat_major;
    wanted.dapl_version_minor = dat_minor;
    wanted.is_thread_safe = ToBoolean(thread_safe);
    if (OpenOnRegistered(wanted, request, &result)) return result;
    return found != DAT_SUCCESS ? found : Failure(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  });
}

}  // namespace viaduct::dat
