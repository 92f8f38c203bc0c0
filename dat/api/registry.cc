// What adapters there are.
#include "dat/registry/registry.h"

#include <algorithm>
#include <vector>

#include "dat/api/face.h"
#include "dat/api/providers.h"
#include "verbs/base/settings.h"

namespace viaduct::dat {
namespace {

bool Contains(const std::vector<DAT_PROVIDER_INFO>& infos, const DAT_PROVIDER_INFO& info) {
  return std::any_of(infos.begin(), infos.end(),
                     [&](const DAT_PROVIDER_INFO& other) { return IsSame(other, info); });
}

// A built-in adapter has two entries. The list shows only its nonthreadsafe one, which is like a
// line of dat.conf, so that one adapter fits into a list with room for one, as was usual. The
// adapter can be opened either way.
bool IsBuiltIn(const registry::Entry& entry) { return entry.library.empty(); }

bool FillsShortLists() { return verbs::ChoiceSetting(verbs::SettingId::kShortList) == "filled"; }

}  // namespace

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned,
                                       DAT_PROVIDER_INFO*(dat_provider_list[])) {
  return Control([&]() -> DAT_RETURN {
    if (entries_returned == nullptr) return BadParameter(2);
    std::vector<DAT_PROVIDER_INFO> infos;
    for (const registry::Entry& entry : registry::Registry::Get().entries()) {
      if (entry.major != kMajor || (IsBuiltIn(entry) && entry.thread_safe)) continue;
      const DAT_PROVIDER_INFO info = InfoOf(entry);
      // Alternatives count as one adapter.
      if (!Contains(infos, info)) infos.push_back(info);
    }
    for (const DAT_PROVIDER_INFO& info : RegisteredByProgram()) {
      if (!Contains(infos, info)) infos.push_back(info);
    }
    *entries_returned = static_cast<DAT_COUNT>(infos.size());
    if (max_to_return < *entries_returned) {
      // uDAPL 1.2 dat_registry_list_providers: a list that is too short gets the number only.
      if (max_to_return <= 0 || !FillsShortLists()) return BadParameter(1);
      *entries_returned = max_to_return;
    }
    if (dat_provider_list == nullptr) return BadParameter(3);
    for (DAT_COUNT i = 0; i < *entries_returned; ++i) {
      if (dat_provider_list[i] == nullptr) return BadParameter(3);
      *dat_provider_list[i] = infos[static_cast<size_t>(i)];
    }
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
