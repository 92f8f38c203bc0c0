// What adapters there are, by name: the built-in soft0, and those of dat.conf.
#ifndef VIADUCT_DAT_REGISTRY_REGISTRY_H_
#define VIADUCT_DAT_REGISTRY_REGISTRY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dat/core/error.h"
#include "verbs/base/address.h"

namespace viaduct::registry {

// One adapter in one version of the interface.
struct Entry {
  std::string name;
  uint32_t major = 0;
  uint32_t minor = 0;
  bool thread_safe = false;
  std::string interface;  // of the network, or an address; empty: that of the default route
};

// Why nothing fits: the first of name, major version, minor version and thread safety that no
// entry has.
enum class Found { kNoName, kNoMajor, kNoMinor, kNoThreadSafety, kYes };

class Registry {
 public:
  // The process's, made at the first call and never changed: any thread, entries stay.
  static const Registry& Get();

  explicit Registry(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  const std::vector<Entry>& entries() const { return entries_; }

  // The entry with the lowest minor version that is at least `minor` (uDAPL 1.2 dat_ia_open).
  Found Find(const std::string& name, uint32_t major, uint32_t minor, bool thread_safe,
             const Entry** entry) const;

 private:
  const std::vector<Entry> entries_;
};

// soft0, for both versions, thread-safe and not: the engine always is.
std::vector<Entry> BuiltInEntries();

// Where the entry's adapter is. kNotFound: there is no such interface here.
core::Error AddressOf(const Entry& entry, verbs::Address* address);

}  // namespace viaduct::registry

#endif  // VIADUCT_DAT_REGISTRY_REGISTRY_H_
