#include "verbs/base/interfaces.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kLoopback = 0x7f000001;

socklen_t LengthOf(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

// Null if there is no descriptor to read the file with now; empty if it may not be read.
std::optional<std::string> ReadFile(const char* path) {
  const Fd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    const int error = errno;
    Log(LogLevel::kWarn, path, ": ", std::strerror(error),
        IsShortage(error) ? "" : "; the default adapter is loopback");
    if (IsShortage(error)) return std::nullopt;
  }
  std::string text;
  char piece[4096];
  for (ssize_t size; (size = read(file.get(), piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(size));
  }
  return text;
}

// `label` is the interface's name or, of an IPv4 address that has a label of its own, that: by
// convention it begins with the name and a colon.
std::optional<Interface> InterfaceOf(const char* label, const sockaddr* label_address,
                                     unsigned flags) {
  const std::optional<Address> address =
      Address::FromSockaddr(label_address, LengthOf(label_address));
  if (!address) return std::nullopt;
  Interface interface;
  interface.label = label;
  interface.name = interface.label.substr(0, interface.label.find(':'));
  interface.index = if_nametoindex(interface.name.c_str());
  interface.address = *address;
  interface.loopback = (flags & IFF_LOOPBACK) != 0;
  interface.up = (flags & IFF_UP) != 0;
  return interface;
}

void Sort(Interfaces* interfaces) {
  std::stable_sort(interfaces->begin(), interfaces->end(),
                   [](const Interface& a, const Interface& b) {
                     if (a.index != b.index) return a.index < b.index;
                     return a.address.family() == AF_INET && b.address.family() != AF_INET;
                   });
}

}  // namespace

std::optional<Interfaces> ListInterfaces() {
  Interfaces interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    const int error = errno;
    Log(LogLevel::kWarn, "the kernel does not list its interfaces: ", std::strerror(error),
        IsShortage(error) ? "" : "; those with IPv4 are asked for");
    if (IsShortage(error)) return std::nullopt;
    return internal::ListIpv4Interfaces();
  }
  const absl::Cleanup free = [list] { freeifaddrs(list); };
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (auto found = InterfaceOf(entry->ifa_name, entry->ifa_addr, entry->ifa_flags)) {
      interfaces.push_back(*std::move(found));
    }
  }
  Sort(&interfaces);
  return interfaces;
}

bool HasAddress(const Interfaces& interfaces, const Address& address) {
  return std::any_of(interfaces.begin(), interfaces.end(),
                     [&](const Interface& interface) { return interface.address == address; });
}

std::optional<Address> InterfaceAddress(const Interfaces& interfaces, absl::string_view name) {
  const auto rank = [name](const Interface& interface) {
    return (interface.address.family() == AF_INET ? 2 : 0) + (interface.label == name ? 1 : 0);
  };
  const Interface* best = nullptr;
  for (const Interface& interface : interfaces) {
    if (interface.label != name && interface.name != name) continue;
    if (best == nullptr || rank(interface) > rank(*best)) best = &interface;
  }
  return best != nullptr ? std::optional(best->address) : std::nullopt;
}

std::optional<Address> DefaultAddress(const Interfaces& interfaces) {
  // /proc/net belongs to the main thread and is gone once that has ended (pthread_exit).
  const std::optional<std::string> routes = ReadFile("/proc/thread-self/net/route");
  if (!routes) return std::nullopt;
  const std::string name = internal::DefaultRouteInterface(*routes);
  for (const Interface& interface : interfaces) {
    if (interface.name == name && interface.address.family() == AF_INET) return interface.address;
  }
  return Address::V4(kLoopback);
}

namespace internal {

std::optional<Interfaces> ListIpv4Interfaces() {
  Interfaces interfaces;
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return IsShortage(errno) ? std::nullopt : std::optional(interfaces);
  std::vector<ifreq> entries(16);
  ifconf list;
  for (;;) {
    list.ifc_len = static_cast<int>(entries.size() * sizeof(ifreq));
    list.ifc_req = entries.data();
    if (ioctl(socket.get(), SIOCGIFCONF, &list) != 0) return interfaces;
    if (static_cast<size_t>(list.ifc_len) < entries.size() * sizeof(ifreq)) break;
    entries.resize(2 * entries.size());  // there may be more
  }
  entries.resize(static_cast<size_t>(list.ifc_len) / sizeof(ifreq));
  for (const ifreq& entry : entries) {
    ifreq asked = entry;
    if (ioctl(socket.get(), SIOCGIFFLAGS, &asked) != 0) continue;
    const auto flags = static_cast<unsigned short>(asked.ifr_flags);
    if (auto found = InterfaceOf(entry.ifr_name, &entry.ifr_addr, flags)) {
      interfaces.push_back(*std::move(found));
    }
  }
  Sort(&interfaces);
  return interfaces;
}

// Fields: Iface Destination Gateway Flags RefCnt Use Metric Mask ...; addresses and flags in hex.
std::string DefaultRouteInterface(absl::string_view table) {
  std::string best;
  uint32_t best_metric = std::numeric_limits<uint32_t>::max();
  for (absl::string_view line : absl::StrSplit(table, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (fields.size() < 8) continue;
    uint32_t destination, flags, mask;
    int64_t shown;  // with a sign, from 2^31 on, by kernels like Linux 6.1
    if (!absl::SimpleHexAtoi(fields[1], &destination) || !absl::SimpleHexAtoi(fields[3], &flags) ||
        !absl::SimpleAtoi(fields[6], &shown) || !absl::SimpleHexAtoi(fields[7], &mask)) {
      continue;
    }
    const auto metric = static_cast<uint32_t>(shown);
    if (destination != 0 || mask != 0 || (flags & RTF_UP) == 0 || (flags & RTF_REJECT) != 0) {
      continue;
    }
    if (best.empty() || metric < best_metric) {
      best = std::string(fields[0]);
      best_metric = metric;
    }
  }
  return best;
}

}  // namespace internal

}  // namespace viaduct::verbs
