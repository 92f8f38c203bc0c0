#include "verbs/base/mappings.h"

#include <cstdio>

namespace viaduct::verbs {

bool EveryMapping(const void* address, size_t length,
                  absl::FunctionRef<bool(const Mapping&)> suits) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return true;
  uint64_t next = reinterpret_cast<uintptr_t>(address);
  const uint64_t end = next + length;
  char line[512];
  bool whole = true;  // `line` begins a line of the file
  // The lines are sorted by address.
  while (next < end && std::fgets(line, sizeof line, maps) != nullptr) {
    const bool begins = whole;
    whole = false;
    for (const char* c = line; *c != 0; ++c) whole = *c == '\n';
    unsigned long long from = 0, to = 0;
    char rights[5] = {};
    if (!begins || std::sscanf(line, "%llx-%llx %4s", &from, &to, rights) != 3) continue;
    if (to <= next) continue;
    const Mapping mapping = {from, to, rights[0] == 'r', rights[1] == 'w', rights[3] == 's'};
    if (from > next || !suits(mapping)) break;
    next = to;
  }
  std::fclose(maps);
  return next >= end;
}

}  // namespace viaduct::verbs
