// Names of hosts to NIC addresses and back, for VipNS*.
//
// A name is looked up in the hosts file, then among the names of this host, then by the system's
// resolver; a long name that none knows is this host's if it begins with its short one. A name that
// the resolver knows, but without an IPv4 address, is nobody's. Nothing is kept between calls. May
// block in the resolver; no lock is held.
#ifndef VIADUCT_COMPAT_NAME_SERVICE_H_
#define VIADUCT_COMPAT_NAME_SERVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "compat/net_address.h"

namespace viaduct::compat {

// The file that M-VIA read. One host on a line, "address name [alias...]" or "name address"; '#'
// begins a comment; several names may share an address, and a name may have several. A line that
// is neither is skipped.
class HostsFile {
 public:
  static HostsFile Parse(const std::string& text);
  // As ReadWordFile has it. A line that is skipped is logged.
  static HostsFile Read(const std::string& path);

  // In the file's order. The exact name, else what stands before the first dot of `name`, else the
  // long names that begin with it and a dot.
  std::vector<NicAddress> AddressesOf(const std::string& name) const;
  // The first name of the address; empty if none.
  std::string NameOf(const NicAddress& address) const;
  // All of them in the file's order, one as often as it has names.
  std::vector<NicAddress> Addresses() const;
  // Numbers of the lines, from 1, that say something and are no entry.
  const std::vector<int>& skipped() const { return skipped_; }

 private:
  std::vector<std::pair<std::string, NicAddress>> entries_;
  std::vector<int> skipped_;
};

// The one that VIADUCT_VIP_HOSTS names, as it is now.
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
// The system's. std::bad_alloc where descriptors or memory are short: it has not answered then.
ResolverAnswer AskResolver(const std::string& name, const HostIdentity& self);

// All addresses of `name`, first the one that NameIndex 0 means; empty if it is unknown.
std::vector<NicAddress> LookUpName(const std::string& name, const HostsFile& file,
                                   const HostIdentity& self, Resolver resolver = AskResolver);
// Empty if it has no name. std::bad_alloc as above.
std::string LookUpAddress(const NicAddress& address, const HostsFile& file,
                          const HostIdentity& self);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NAME_SERVICE_H_
