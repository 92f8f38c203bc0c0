// What adapters there are.
#include "dat/registry/registry.h"

#include <cstdio>
#include <vector>

#include "dat/api/face.h"

namespace viaduct::dat {

VIADUCT_DAT_EXPORT DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return,
                                                          DAT_COUNT* entries_returned,
                                                          DAT_PROVIDER_INFO*(dat_provider_list[])) {
  return Control([&]() -> DAT_RETURN {
    if (entries_returned == nullptr) return BadParameter(2);
    std::vector<const registry::Entry*> entries;
    for (const registry::Entry& entry : registry::Registry::Get().entries()) {
      if (entry.major == kMajor) entries.push_back(&entry);
    }
    // uDAPL 1.2 dat_registry_list_providers: a list that is too short gets the number only.
    *entries_returned = static_cast<DAT_COUNT>(entries.size());
    if (max_to_return < *entries_returned) return BadParameter(1);
    if (dat_provider_list == nullptr) return BadParameter(3);
    for (size_t i = 0; i < entries.size(); ++i) {
      DAT_PROVIDER_INFO* info = dat_provider_list[i];
      if (info == nullptr) return BadParameter(3);
      snprintf(info->ia_name, sizeof info->ia_name, "%s", entries[i]->name.c_str());
      info->dapl_version_major = entries[i]->major;
      info->dapl_version_minor = entries[i]->minor;
      info->is_thread_safe = ToBoolean(entries[i]->thread_safe);
    }
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
