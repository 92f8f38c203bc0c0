#include "tests/interop/route.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace viaduct::tests {
namespace {

// The plug-in beside the engine, as they are installed.
void UsePlugin() {
  const std::filesystem::path folder = std::filesystem::path(getenv("TEST_TMPDIR")) / "installed";
  std::filesystem::create_directories(folder);
  for (const char* library : {"dat/api/libdapl-viaduct.so.2", "dat/core/libviaduct.so.1"}) {
    std::filesystem::copy_file(library, folder / std::filesystem::path(library).filename(),
                               std::filesystem::copy_options::overwrite_existing);
  }
  const std::filesystem::path conf = folder / "dat.conf";
  std::ofstream out(conf);
  for (const char* safety : {"nonthreadsafe", "threadsafe"}) {
    out << kAdapter << " u2.0 " << safety << " default "
        << (folder / "libdapl-viaduct.so.2").string() << " viaduct.0.1 \"lo 0\" \"\"\n";
  }
  setenv("DAT_OVERRIDE", conf.c_str(), 1);
}

void UseOwnLibrary() {
  const std::string here = std::filesystem::current_path();
  setenv("LD_LIBRARY_PATH", (here + "/dat/api:" + here + "/dat/core").c_str(), 1);
}

}  // namespace

bool IsPlugin() {
  const char* const route = getenv("INTEROP_ROUTE");
  return route != nullptr && strcmp(route, "plugin") == 0;
}

void ChooseRoute() {
  if (IsPlugin()) {
    UsePlugin();
  } else {
    UseOwnLibrary();
    // dtest -p compares with the bare type.
    setenv("VIADUCT_QUEUE_EMPTY", "bare", 1);
  }
}

std::string WhyNotHere(const std::string& program) {
  if (access(program.c_str(), X_OK) != 0) return program + " is not installed: tools/setup test";
  return "";
}

}  // namespace viaduct::tests
