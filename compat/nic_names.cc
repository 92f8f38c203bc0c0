#include "compat/nic_names.h"

#include <cstring>

namespace viaduct::compat {
namespace {

constexpr const char* kDefaultNames[] = {"soft0", "nic0", "nic", "VINIC", "VINIC0",
                                         "/dev/clanvi0"};
// "/etc/via_lo" is a slip of the pen in a program that ran.
constexpr const char* kPrefixes[] = {"/dev/via_", "/etc/via_"};

int TrailingNumber(const std::string& name) {
  size_t first = name.size();
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  if (first == name.size() || name.size() - first > 4) return -1;
  return std::stoi(name.substr(first));
}

}  // namespace

NicName ParseNicName(const std::string& name) {
  NicName parsed;
  for (const char* known : kDefaultNames) {
    if (name == known) {
      parsed.kind = NicName::Kind::kDefault;
      return parsed;
    }
  }
  for (const char* prefix : kPrefixes) {
    const size_t length = std::strlen(prefix);
    if (name.size() <= length || name.compare(0, length, prefix) != 0) continue;
    parsed.interface = name.substr(length);
    if (parsed.interface == "lo") {
      parsed.kind = NicName::Kind::kLoopback;
    } else {
      parsed.kind = NicName::Kind::kInterface;
      parsed.index = TrailingNumber(parsed.interface);
    }
    return parsed;
  }
  parsed.interface = name;
  return parsed;
}

}  // namespace viaduct::compat
