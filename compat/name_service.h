// Translates names of hosts to NIC addresses and back, for VipNS*.
//
// A name is looked up in the hosts file, then among the names of this host, then by the system's
// resolver; a long name that none of them knows is this host's if it begins with the host's short
// one. A name that the resolver knows, but without an IPv4 address, is nobody's. Nothing is cached
// between calls. A lookup may block in the resolver; it holds no lock.
#ifndef VIADUCT_COMPAT_NAME_SERVICE_H_
#define VIADUCT_COMPAT_NAME_SERVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "compat/net_address.h"

namespace viaduct::compat {

// The hosts file, as M-VIA read it. One host per line, "address name [alias...]" or "name address";
// '#' begins a comment; several names may share an address, and a name may have several. Any other
// line is skipped.
class HostsFile {
 public:
  static HostsFile Parse(const std::string& text);
  // Reads the file as ReadWordFile does. A line that is skipped is logged.
  static HostsFile Read(const std::string& path);

  // In the file's order: the addresses of exactly that name; if there are none, for a long name
  // those of its part before the first dot, for a short name those of the long names that begin
  // with it and a dot.
  std::vector<NicAddress> AddressesOf(const std::string& name) const;
  // The first name of the address; empty if none.
  std::string NameOf(const NicAddress& address) const;
  // All addresses in the file's order; one with several names appears once for each.
  std::vector<NicAddress> Addresses() const;
  // Numbers (from 1) of the lines that have words but are no entry.
  const std::vector<int>& skipped() const { return skipped_; }

 private:
  std::vector<std::pair<std::string, NicAddress>> entries_;
  std::vector<int> skipped_;
};

// Reads the file that VIADUCT_VIP_HOSTS names, anew at each call.
HostsFile ConfiguredHosts();

struct HostIdentity {
  std::string name;    // as gethostname gives it
  NicAddress address;  // of the NIC that asks
};
HostIdentity ThisHost(const NicAddress& address);

struct ResolverAnswer {
  int error = 0;  // of getaddrinfo
  std::vector<NicAddress> addresses;
};
using Resolver = ResolverAnswer (*)(const std::string& name, const HostIdentity& self);
// Asks the system's resolver. Throws std::bad_alloc if descriptors or memory are short, since that
// is no answer.
ResolverAnswer AskResolver(const std::string& name, const HostIdentity& self);

// All addresses of `name`, first the one that NameIndex 0 means; empty if it is unknown.
std::vector<NicAddress> LookUpName(const std::string& name, const HostsFile& file,
                                   const HostIdentity& self, Resolver resolver = AskResolver);
// The name of `address`; empty if it has none. Throws std::bad_alloc as above.
std::string LookUpAddress(const NicAddress& address, const HostsFile& file,
                          const HostIdentity& self);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NAME_SERVICE_H_
