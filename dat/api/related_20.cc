// Whether two adapters can stand in for each other. An adapter of the engine can stand in only for
// itself. About other adapters their provider is asked, which takes an open adapter.
#include <cstring>
#include <optional>
#include <string>

#include "dat/api/face.h"
#include "dat/api/providers.h"

namespace viaduct::dat {
namespace {

bool IsName(const char* name) {
  return name != nullptr && strnlen(name, DAT_NAME_MAX_LENGTH) < DAT_NAME_MAX_LENGTH;
}

bool IsListed(const std::string& name, bool* engines) {
  *engines = false;
  bool listed = false;
  for (const registry::Entry& entry : registry::Registry::Get().entries()) {
    if (entry.major != kMajor || entry.name != name) continue;
    listed = true;
    *engines = *engines || registry::IsEngines(entry);
  }
  for (const DAT_PROVIDER_INFO& info : RegisteredByProgram()) {
    listed = listed || name == info.ia_name;
  }
  return listed;
}

// Whether the adapter `name` can stand in for `other`; nullopt if nobody can be asked.
std::optional<bool> Ask(const std::string& name, bool engines, const std::string& other) {
  if (engines) return name == other;
  std::optional<bool> said;
  AskOpenAdapter(name, [&](const DAT_PROVIDER& provider, DAT_IA_HANDLE adapter) {
    DAT_BOOLEAN answer = DAT_FALSE;
    if (provider.ia_ha_related_func != nullptr &&
        provider.ia_ha_related_func(adapter, const_cast<char*>(other.c_str()), &answer) ==
            DAT_SUCCESS) {
      said = answer != DAT_FALSE;
    }
  });
  return said;
}

}  // namespace

DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR provider, const DAT_NAME_PTR related,
                                          DAT_HA_RELATIONSHIP* answer) {
  return Control([&]() -> DAT_RETURN {
    if (!IsName(provider)) return BadParameter(1);
    if (!IsName(related)) return BadParameter(2);
    if (answer == nullptr) return BadParameter(3);
    bool engines[2];
    if (!IsListed(provider, &engines[0]) || !IsListed(related, &engines[1])) {
      return Failure(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    }
    const std::optional<bool> there = Ask(provider, engines[0], related);
    const std::optional<bool> back = Ask(related, engines[1], provider);
    if (!there || !back) {
      *answer = DAT_HA_UNKNOWN;
    } else if (*there != *back) {
      *answer = DAT_HA_CONFLICTING;
    } else {
      *answer = *there ? DAT_HA_TRUE : DAT_HA_FALSE;
    }
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
