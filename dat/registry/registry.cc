#include "dat/registry/registry.h"

#include <algorithm>
#include <limits>

namespace viaduct::registry {

const Registry& Registry::Get() {
  static const Registry* const registry = new Registry(ReadEntries());
  return *registry;
}

std::vector<Entry> BuiltInEntries() {
  std::vector<Entry> entries;
  for (const auto& [major, minor] : {std::pair<uint32_t, uint32_t>{1, 2}, {2, 0}}) {
    for (bool thread_safe : {false, true}) {
      Entry entry;
      entry.name = "soft0";
      entry.major = major;
      entry.minor = minor;
      entry.thread_safe = thread_safe;
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::vector<Entry> WithBuiltIn(std::vector<Entry> file) {
  std::vector<Entry> entries = std::move(file);
  const size_t from_file = entries.size();
  for (Entry& built_in : BuiltInEntries()) {
    const bool taken = std::any_of(
        entries.begin(), entries.begin() + static_cast<ptrdiff_t>(from_file),
        [&](const Entry& e) { return e.name == built_in.name && e.major == built_in.major; });
    if (!taken) entries.push_back(std::move(built_in));
  }
  return entries;
}

Found Registry::Find(const std::string& name, uint32_t major, uint32_t minor, bool thread_safe,
                     std::vector<const Entry*>* entries) const {
  Found found = Found::kNoName;
  uint32_t best = std::numeric_limits<uint32_t>::max();
  std::vector<const Entry*> fitting;
  for (const Entry& candidate : entries_) {
    Found reached = Found::kYes;
    if (candidate.name != name) continue;
    if (candidate.major != major) {
      reached = Found::kNoMajor;
    } else if (candidate.minor < minor) {
      reached = Found::kNoMinor;
    } else if (candidate.thread_safe != thread_safe) {
      reached = Found::kNoThreadSafety;
    } else {
      fitting.push_back(&candidate);
      best = std::min(best, candidate.minor);
    }
    found = std::max(found, reached);
  }
  for (const Entry* entry : fitting) {
    if (entry->minor == best) entries->push_back(entry);
  }
  return found;
}

}  // namespace viaduct::registry
