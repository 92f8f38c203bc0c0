// Which interface the name of a NIC means: programs carry the names of devices long gone.
#ifndef VIADUCT_COMPAT_NIC_NAMES_H_
#define VIADUCT_COMPAT_NIC_NAMES_H_

#include <optional>
#include <string>
#include <vector>

#include "verbs/base/address.h"
#include "verbs/base/interfaces.h"

namespace viaduct::compat {

struct NicName {
  enum class Kind {
    kDefault,    // soft0, nic0, nic, VINIC, VINIC0, /dev/clanvi0
    kLoopback,   // /dev/via_lo, /etc/via_lo
    kInterface,  // /dev/via_NAME: that interface; without one, if NAME ends in N, the N-th
    kOther,      // an interface, an address, or a name that means nothing
  };
  Kind kind = Kind::kOther;
  std::string interface;  // kInterface: NAME; kOther: the whole name
  int index = -1;         // kInterface: N, from 0
};
NicName ParseNicName(const std::string& name);

// The address among those of `interfaces`. Null: there is no such NIC. With `any`, a name that
// means nothing is that of the default NIC.
std::optional<verbs::Address> AddressOfNic(const std::string& name, bool any,
                                           const std::vector<verbs::Interface>& interfaces,
                                           const verbs::Address& default_address);

// The same on this host, by its settings.
std::optional<verbs::Address> AddressOfNic(const std::string& name);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NIC_NAMES_H_
