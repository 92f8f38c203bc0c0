#include "verbs/base/mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace viaduct::verbs {

bool EveryMapping(const void* address, size_t length,
                  absl::FunctionRef<bool(const Mapping&)> suits) {
  // The thread's file: the process's own is empty once the main thread has ended (pthread_exit).
  std::FILE* maps = std::fopen("/proc/thread-self/maps", "re");
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
    unsigned long long from = 0, to = 0, inode = 0;
    char rights[5] = {};
    if (!begins ||
        std::sscanf(line, "%llx-%llx %4s %*x %*x:%*x %llu", &from, &to, rights, &inode) != 4) {
      continue;
    }
    if (to <= next) continue;
    const Mapping mapping = {from,      to, rights[0] == 'r', rights[1] == 'w', rights[3] == 's',
                             inode != 0};
    if (from > next || !suits(mapping)) break;
    next = to;
  }
  std::fclose(maps);
  return next >= end;
}

bool IsInFile(uint64_t address) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  void* const start = reinterpret_cast<void*>(address / page * page);
  return madvise(start, page, MADV_POPULATE_READ) == 0 || errno != EFAULT;
}

}  // namespace viaduct::verbs
