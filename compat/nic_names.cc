#include "compat/nic_names.h"

#include <algorithm>
#include <cstring>

#include "verbs/base/log.h"
#include "verbs/base/settings.h"
#include "verbs/open_device.h"

namespace viaduct::compat {
namespace {

constexpr const char* kDefaultNames[] = {"soft0", "nic0", "nic", "VINIC", "VINIC0", "/dev/clanvi0"};
// "/etc/via_lo" is a slip of the pen in a program that ran.
constexpr const char* kPrefixes[] = {"/dev/via_", "/etc/via_"};
constexpr uint32_t kLocalhost = 0x7f000001;

int TrailingNumber(const std::string& name) {
  size_t first = name.size();
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  if (first == name.size() || name.size() - first > 4) return -1;
  return std::stoi(name.substr(first));
}

// NIC addresses are IPv4.
bool IsUsable(const verbs::Interface& interface) {
  return interface.up && interface.address.family() == AF_INET;
}

std::optional<verbs::Address> AddressOfInterface(const std::string& name,
                                                 const std::vector<verbs::Interface>& interfaces) {
  for (const auto field : {&verbs::Interface::label, &verbs::Interface::name}) {
    for (const verbs::Interface& interface : interfaces) {
      if (IsUsable(interface) && interface.*field == name) return interface.address;
    }
  }
  return std::nullopt;
}

// Counts interfaces that lead out of the host, each once.
std::optional<verbs::Address> AddressOfNth(int n, const std::vector<verbs::Interface>& interfaces) {
  std::vector<std::string> seen;
  for (const verbs::Interface& interface : interfaces) {
    if (!IsUsable(interface) || interface.loopback ||
        std::find(seen.begin(), seen.end(), interface.name) != seen.end()) {
      continue;
    }
    if (static_cast<int>(seen.size()) == n) return interface.address;
    seen.push_back(interface.name);
  }
  return std::nullopt;
}

std::optional<verbs::Address> AddressOfOther(const std::string& name,
                                             const std::vector<verbs::Interface>& interfaces) {
  if (std::optional<verbs::Address> found = AddressOfInterface(name, interfaces)) return found;
  const std::optional<verbs::Address> number = verbs::Address::Parse(name);
  if (!number) return std::nullopt;
  for (const verbs::Interface& interface : interfaces) {
    if (IsUsable(interface) && interface.address == *number) return number;
  }
  return std::nullopt;
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

std::optional<verbs::Address> AddressOfNic(const std::string& name,
                                           const std::vector<verbs::Interface>& interfaces,
                                           const verbs::Address& default_address) {
  const NicName parsed = ParseNicName(name);
  std::optional<verbs::Address> found;
  switch (parsed.kind) {
    case NicName::Kind::kDefault:
      return default_address;
    case NicName::Kind::kLoopback:
      return verbs::Address::V4(kLocalhost);
    case NicName::Kind::kInterface:
      found = AddressOfInterface(parsed.interface, interfaces);
      if (!found && parsed.index >= 0) found = AddressOfNth(parsed.index, interfaces);
      break;
    case NicName::Kind::kOther:
      found = AddressOfOther(parsed.interface, interfaces);
      break;
  }
  return found;
}

core::Error ChooseNic(const std::string& name, const NicFile& file, bool any,
                      const std::vector<verbs::Interface>& interfaces,
                      const verbs::Address& default_address, const RdmaNames& rdma,
                      NicChoice* choice) {
  const auto choose = [&](const verbs::Address& address, const std::string& device) {
    *choice = {address, device};
    return core::Ok();
  };
  const auto choose_listed = [&](const NicFile::Entry& entry) -> core::Error {
    if (entry.interface == NicFile::kNone) return core::Code::kNotFound;
    if (entry.interface == NicFile::kDefault) return choose(default_address, entry.device);
    const auto address = AddressOfOther(entry.interface, interfaces);
    if (!address) return core::Code::kNotFound;
    return choose(*address, entry.device);
  };
  if (const NicFile::Entry* entry = file.Find(name)) return choose_listed(*entry);
  if (const auto known = AddressOfNic(name, interfaces, default_address)) {
    return choose(*known, verbs::kAnyDevice);
  }
  std::string others;  // adapters of the same device
  for (const verbs::RdmaAdapter& adapter : rdma.adapters()) {
    if (adapter.address.family() != AF_INET) continue;
    if (adapter.name == name) return choose(adapter.address, adapter.device);
    if (adapter.device == name.substr(0, name.find(':'))) others += " " + adapter.name;
  }
  if (rdma.names_device(name)) {
    const std::string why =
        others.empty()
            ? "not for this process: see \"RIGHTS AND LIMITS\" in viaduct(7), and that its "
              "interface has an IPv4 address"
            : "it is called otherwise here:" + others;
    verbs::Log(verbs::LogLevel::kWarn, "there is an RDMA device \"" + name + "\", but " + why);
    return core::OutOf(core::Resource::kDevice);
  }
  if (const NicFile::Entry* rest = file.CatchAll()) return choose_listed(*rest);
  if (!any) return core::Code::kNotFound;
  verbs::Log(verbs::LogLevel::kInfo,
             "no NIC is called \"" + name + "\" here: it is the default one (VIADUCT_NIC_NAMES)");
  return choose(default_address, verbs::kAnyDevice);
}

core::Error ChooseNic(const std::string& name, NicChoice* choice) {
  const std::optional<verbs::Interfaces> interfaces = verbs::ListInterfaces();
  if (!interfaces) return core::OutOf(core::Resource::kDevice);
  const std::optional<verbs::Address> default_address = verbs::DefaultAddress(*interfaces);
  if (!default_address) return core::OutOf(core::Resource::kDevice);
  return ChooseNic(name, NicFile::Read(verbs::PathSetting(verbs::SettingId::kVipNics)),
                   verbs::ChoiceSetting(verbs::SettingId::kNicNames) == "any", *interfaces,
                   *default_address, {verbs::ListRdmaAdapters, verbs::NamesRdmaDevice}, choice);
}

}  // namespace viaduct::compat
