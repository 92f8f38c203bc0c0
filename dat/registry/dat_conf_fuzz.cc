// Any bytes can be parsed; an entry stays the same when it is written as a line and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "dat/registry/dat_conf.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using viaduct::registry::DatConf;
  using viaduct::registry::Entry;
  const DatConf conf = viaduct::registry::ParseDatConf({reinterpret_cast<const char*>(data), size});
  int last = 0;
  for (const Entry& entry : conf.entries) {
    Require(entry.line > last);
    last = entry.line;
    Require(!entry.name.empty() && entry.name.size() <= viaduct::registry::kMaxNameLength);
    const std::string line = viaduct::registry::ToLine(entry);
    const DatConf again = viaduct::registry::ParseDatConf(line);
    Require(again.bad_lines.empty() && again.entries.size() == 1);
    const Entry& copy = again.entries[0];
    Require(copy.name == entry.name && copy.major == entry.major && copy.minor == entry.minor &&
            copy.thread_safe == entry.thread_safe && copy.library == entry.library &&
            copy.library_version == entry.library_version && copy.parameters == entry.parameters &&
            copy.platform == entry.platform);
  }
  last = 0;
  for (const auto& bad : conf.bad_lines) {
    Require(bad.line > last && !bad.reason.empty());
    last = bad.line;
  }
  return 0;
}
