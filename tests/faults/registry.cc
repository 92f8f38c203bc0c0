#include "tests/faults/registry.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#define REGISTRY_EXPORT extern "C" __attribute__((visibility("default")))

// The plug-in's function, which a registry looks up.
extern "C" void dat_provider_init(const DAT_PROVIDER_INFO* info, const char* parameters);

namespace {

const DAT_PROVIDER* table = nullptr;
std::vector<DAT_IA_HANDLE> adapters;  // a program knows each by its place, counted from 1

}  // namespace

REGISTRY_EXPORT DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider,
                                                     const DAT_PROVIDER_INFO*) {
  table = provider;
  return DAT_SUCCESS;
}
REGISTRY_EXPORT DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER*,
                                                        const DAT_PROVIDER_INFO*) {
  return DAT_SUCCESS;
}
REGISTRY_EXPORT DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* shown) {
  const auto found = std::find(adapters.begin(), adapters.end(), handle);
  if (found == adapters.end()) return DAT_CLASS_ERROR | DAT_INVALID_HANDLE;
  *shown = reinterpret_cast<DAT_IA_HANDLE>(found - adapters.begin() + 1);
  return DAT_SUCCESS;
}

namespace viaduct::tests {

const DAT_PROVIDER* ServeAdapter(const char* name, const char* address) {
  DAT_PROVIDER_INFO info = {"", 2, 0, DAT_FALSE};
  std::string(name).copy(info.ia_name, sizeof info.ia_name - 1);
  dat_provider_init(&info, address);
  return table;
}

DAT_RETURN OpenAdapter(const char* name, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia,
                       DAT_IA_HANDLE* shown) {
  std::string copy = name;
  const DAT_RETURN opened = table->ia_open_func(copy.data(), 8, async, ia);
  if (opened != DAT_SUCCESS) return opened;
  adapters.push_back(*ia);
  return dats_get_ia_handle(*ia, shown);
}

}  // namespace viaduct::tests
