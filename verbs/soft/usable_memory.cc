#include "verbs/soft/usable_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace viaduct::verbs {
namespace {

// Is the range mapped without a hole? This msync checks the mappings and does nothing else.
bool IsMapped(uint64_t start, uint64_t length) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = start / page * page;
  return msync(reinterpret_cast<void*>(first), start + length - first, MS_ASYNC) == 0 ||
         errno != ENOMEM;
}

}  // namespace

bool UsableMemory::Has(const void* address, size_t length, bool written) {
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (!IsMapped(start, length)) return false;
  // The end tells whether a file is there now that does not reach so far.
  if (Remembers(start, length) && IsInFile(start + length - 1)) return true;
  Mapping together;  // of adjacent writable mappings: a program's data have two or three
  const bool has = EveryMapping(address, length, [&](const Mapping& mapping) {
    if (!mapping.readable || (written && !mapping.writable)) return false;
    const bool whole = !mapping.file || IsInFile(mapping.end - 1);
    if (!whole && !IsInFile(std::min(mapping.end, start + length) - 1)) return false;
    if (!whole || !mapping.writable) return true;
    if (mapping.begin != together.end) together.begin = mapping.begin;
    together.end = mapping.end;
    return true;
  });
  if (together.end != 0) Remember(together);
  return has;
}

bool UsableMemory::Remembers(uint64_t address, size_t length) {
  MutexLock lock(&mutex_);
  return std::any_of(writable_.begin(), writable_.end(),
                     [&](const Mapping& mapping) { return mapping.Holds(address, length); });
}

void UsableMemory::Remember(const Mapping& mapping) {
  MutexLock lock(&mutex_);
  writable_[next_++ % writable_.size()] = mapping;
}

}  // namespace viaduct::verbs
