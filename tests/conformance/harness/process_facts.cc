#include "tests/conformance/harness/process_facts.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

namespace viaduct::tests {
namespace {

int Entries(const char* folder) {
  DIR* directory = opendir(folder);
  if (directory == nullptr) return INT_MAX;
  int n = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++n;
  }
  closedir(directory);
  return n;
}

}  // namespace

int OpenDescriptors() {
  const int entries = Entries("/proc/self/fd");
  return entries == INT_MAX ? entries : entries - 1;  // without that of the folder itself
}

int Threads() { return Entries("/proc/self/task"); }

long PssKib() {
  FILE* file = fopen("/proc/self/smaps_rollup", "re");
  if (file == nullptr) return -1;
  char line[256];
  long all = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    long kib;
    if (sscanf(line, "Pss_Anon: %ld kB", &kib) == 1) all += kib;
    if (sscanf(line, "Pss_Shmem: %ld kB", &kib) == 1) all += kib;
  }
  fclose(file);
  return all;
}

double SecondsOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace viaduct::tests
