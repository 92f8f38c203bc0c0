#include "verbs/base/shared_mapping.h"

#include <cstdint>
#include <cstdio>

namespace viaduct::verbs {

bool IsSharedMapping(const void* address, size_t length) {
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
    if (from > next || rights[3] != 's') break;
    next = to;
  }
  std::fclose(maps);
  return next >= end;
}

}  // namespace viaduct::verbs
