#include "dat/registry/registry.h"

#include <algorithm>

namespace viaduct::registry {

const Registry& Registry::Get() {
  static const Registry* const registry = new Registry(BuiltInEntries());
  return *registry;
}

std::vector<Entry> BuiltInEntries() {
  std::vector<Entry> entries;
  for (const auto& [major, minor] : {std::pair<uint32_t, uint32_t>{1, 2}, {2, 0}}) {
    for (bool thread_safe : {false, true}) {
      entries.push_back({"soft0", major, minor, thread_safe, ""});
    }
  }
  return entries;
}

Found Registry::Find(const std::string& name, uint32_t major, uint32_t minor, bool thread_safe,
                     const Entry** entry) const {
  Found found = Found::kNoName;
  auto reached = [&found](Found step) { found = std::max(found, step); };
  const Entry* best = nullptr;
  for (const Entry& candidate : entries_) {
    if (candidate.name != name) continue;
    reached(Found::kNoMajor);
    if (candidate.major != major) continue;
    reached(Found::kNoMinor);
    if (candidate.minor < minor) continue;
    reached(Found::kNoThreadSafety);
    if (candidate.thread_safe != thread_safe) continue;
    if (best == nullptr || candidate.minor < best->minor) best = &candidate;
  }
  if (best == nullptr) return found;
  *entry = best;
  return Found::kYes;
}

}  // namespace viaduct::registry
