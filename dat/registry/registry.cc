#include "dat/registry/registry.h"

#include <algorithm>
#include <limits>

#include "verbs/base/made_once.h"

namespace viaduct::registry {
namespace {

const Registry* Make() { return new Registry(ReadEntries()); }

void AddBuiltIn(const std::string& name, const std::string& parameters,
                std::vector<Entry>* entries) {
  for (const auto& [major, minor] : {std::pair<uint32_t, uint32_t>{1, 2}, {2, 0}}) {
    for (bool thread_safe : {false, true}) {
      Entry entry;
      entry.name = name;
      entry.major = major;
      entry.minor = minor;
      entry.thread_safe = thread_safe;
      entry.parameters = parameters;
      entries->push_back(std::move(entry));
    }
  }
}

}  // namespace

const Registry& Registry::Get() { return *verbs::MadeOnce<&Make>(); }

std::vector<Entry> BuiltInEntries(const std::vector<verbs::RdmaAdapter>& rdma) {
  std::vector<Entry> entries;
  AddBuiltIn("soft0", "", &entries);
  for (const verbs::RdmaAdapter& adapter : rdma) AddBuiltIn(adapter.name, adapter.name, &entries);
  return entries;
}

std::vector<Entry> WithBuiltIn(std::vector<Entry> file, std::vector<Entry> built_in) {
  std::vector<Entry> entries = std::move(file);
  const size_t from_file = entries.size();
  for (Entry& entry : built_in) {
    const bool taken =
        std::any_of(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(from_file),
                    [&](const Entry& e) { return e.name == entry.name && e.major == entry.major; });
    if (!taken) entries.push_back(std::move(entry));
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
