#include "tests/providers/registry.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace viaduct::tests {

std::string ProviderLibrary(const char* file) {
  return std::filesystem::current_path().string() + "/tests/providers/" + file;
}
std::string Probe() { return ProviderLibrary("libprobe.so"); }

std::string Line(const std::string& name, const std::string& library, const std::string& parameters,
                 const char* safety) {
  return name + " u2.0 " + safety + " default " + library + " x.1.0 \"" + parameters + "\" \"\"\n";
}

void UseConf(const std::string& lines) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/conf" + std::to_string(getpid());
  std::ofstream(path) << lines;
  setenv("DAT_OVERRIDE", path.c_str(), 1);
}

ProbeFacts* Facts() {
  void* const library = dlopen(Probe().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<ProbeFacts* (*)()>(dlsym(library, "probe_facts"))();
}

DAT_RETURN Open(const char* name, DAT_IA_HANDLE* ia, DAT_EVD_HANDLE* async,
                DAT_BOOLEAN thread_safe) {
  DAT_EVD_HANDLE own = DAT_HANDLE_NULL;
  return dat_ia_openv(const_cast<char*>(name), 8, async != nullptr ? async : &own, ia, 2, 0,
                      thread_safe);
}

std::string Said(const std::function<void()>& body) {
  const int kept = dup(STDERR_FILENO);
  const int file = memfd_create("stderr", MFD_CLOEXEC);
  dup2(file, STDERR_FILENO);
  body();
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::string text(static_cast<size_t>(lseek(file, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  close(file);
  return text;
}

}  // namespace viaduct::tests
