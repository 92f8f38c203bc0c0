#include "compat/name_service.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "compat/word_file.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/base/settings.h"

namespace viaduct::compat {
namespace {

constexpr char kLocalhost[] = "localhost";
constexpr NicAddress kLoopback = {127, 0, 0, 1, 0, 0};

bool IsLoopback(const NicAddress& address) { return address[0] == 127; }

std::optional<NicAddress> ParseAddress(const std::string& text) {
  in_addr address;
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return NicAddressOf(verbs::Address::V4(ntohl(address.s_addr)));
}

std::string ShortName(const std::string& name) { return name.substr(0, name.find('.')); }

// tolower and strcasecmp ask the program's locale: in Turkish, i is no lower case of I.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameName(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char one, char other) { return Lower(one) == Lower(other); });
}

bool IsShort(const std::string& name) { return name.find('.') == std::string::npos; }

bool NamesThisHost(const std::string& name, const HostIdentity& self) {
  return SameName(name, self.name) || (IsShort(name) && SameName(name, ShortName(self.name)));
}

// If this host's name is short, the host does not know its domain, so the resolver is asked first:
// a host of another domain may have the same short name.
bool MayNameThisHost(const std::string& name, const HostIdentity& self) {
  const bool is_number = name.find_first_not_of("0123456789.") == std::string::npos;
  return !self.name.empty() && IsShort(self.name) && !is_number &&
         SameName(ShortName(name), self.name);
}

// A machine without a name server gets EAI_AGAIN for every name, and its own long name must work
// there. A name server that is silent for a moment looks the same.
bool NobodyKnows(const ResolverAnswer& answer) {
  return answer.error == EAI_NONAME || answer.error == EAI_AGAIN;
}

// What getaddrinfo or getnameinfo returns when descriptors or memory are short is no answer.
void ThrowIfShort(int error) {
  const bool is_short = error == EAI_MEMORY || (error == EAI_SYSTEM && verbs::IsShortage(errno));
  if (is_short) throw std::bad_alloc();
}

}  // namespace

HostsFile HostsFile::Parse(const std::string& text) {
  HostsFile file;
  for (WordLine& line : WordLinesOf(text)) {
    std::vector<std::string>& words = line.words;
    // The address stands before the name or after it.
    std::optional<NicAddress> address;
    if (words.size() > 1) address = ParseAddress(words[0]);
    if (!address && words.size() > 1) {
      address = ParseAddress(words[1]);
      std::swap(words[0], words[1]);
    }
    if (!address) {
      file.skipped_.push_back(line.number);
      continue;
    }
    for (size_t name = 1; name < words.size(); ++name) {
      file.entries_.emplace_back(std::move(words[name]), *address);
    }
  }
  return file;
}

HostsFile HostsFile::Read(const std::string& path) {
  HostsFile file = Parse(ReadWordFile(path));
  for (int number : file.skipped()) {
    verbs::LogOnce(verbs::LogLevel::kWarn, path + ":" + std::to_string(number) +
                                               ": neither \"address name\" nor \"name address\"");
  }
  return file;
}

HostsFile ConfiguredHosts() {
  return HostsFile::Read(verbs::PathSetting(verbs::SettingId::kVipHosts));
}

std::vector<NicAddress> HostsFile::AddressesOf(const std::string& name) const {
  const std::string before_dot = ShortName(name);
  const bool is_short = before_dot == name;
  std::vector<NicAddress> exact, similar;
  for (const auto& [entry, address] : entries_) {
    if (SameName(entry, name)) {
      exact.push_back(address);
    } else if (SameName(is_short ? ShortName(entry) : entry, before_dot)) {
      similar.push_back(address);
    }
  }
  // The dots of a numeric address separate no domain from a name.
  return exact.empty() && !ParseAddress(name) ? similar : exact;
}

std::string HostsFile::NameOf(const NicAddress& address) const {
  for (const auto& [entry, its_address] : entries_) {
    if (its_address == address) return entry;
  }
  return "";
}

std::vector<NicAddress> HostsFile::Addresses() const {
  std::vector<NicAddress> addresses;
  for (const auto& entry : entries_) addresses.push_back(entry.second);
  return addresses;
}

HostIdentity ThisHost(const NicAddress& address) {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  return {name, address};
}

ResolverAnswer AskResolver(const std::string& name, const HostIdentity& self) {
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  ResolverAnswer answer;
  answer.error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  ThrowIfShort(answer.error);
  if (answer.error != 0) return answer;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<NicAddress>& addresses = answer.addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const std::optional<verbs::Address> address =
        verbs::Address::FromSockaddr(info->ai_addr, info->ai_addrlen);
    if (!address) continue;
    NicAddress nic = NicAddressOf(*address);
    // Debian gives the host's own long name the address 127.0.1.1.
    if (IsLoopback(nic) && nic != kLoopback) nic = self.address;
    if (std::find(addresses.begin(), addresses.end(), nic) == addresses.end()) {
      addresses.push_back(nic);
    }
  }
  return answer;
}

std::vector<NicAddress> LookUpName(const std::string& name, const HostsFile& file,
                                   const HostIdentity& self, Resolver resolver) {
  if (name.empty()) return {};
  std::vector<NicAddress> addresses = file.AddressesOf(name);
  if (!addresses.empty()) return addresses;
  if (SameName(name, kLocalhost)) return {kLoopback};  // even if the host itself is called so
  if (NamesThisHost(name, self)) return {self.address};
  if (const std::optional<NicAddress> address = ParseAddress(name)) return {*address};
  ResolverAnswer answer = resolver(name, self);
  if (NobodyKnows(answer) && MayNameThisHost(name, self)) return {self.address};
  return std::move(answer.addresses);
}

std::string LookUpAddress(const NicAddress& address, const HostsFile& file,
                          const HostIdentity& self) {
  std::string listed = file.NameOf(address);
  if (!listed.empty()) return listed;
  if (address == self.address && !self.name.empty()) return self.name;
  if (address == kLoopback) return kLocalhost;
  sockaddr_in socket_address = {};
  socket_address.sin_family = AF_INET;
  std::copy(address.begin(), address.begin() + 4,
            reinterpret_cast<uint8_t*>(&socket_address.sin_addr));
  char name[NI_MAXHOST];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&socket_address),
                                sizeof socket_address, name, sizeof name, nullptr, 0, NI_NAMEREQD);
  ThrowIfShort(error);
  return error == 0 ? name : "";
}

}  // namespace viaduct::compat
