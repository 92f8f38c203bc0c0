// Which interface the name of a NIC means: vipl programs carry the names of devices long gone.
#ifndef VIADUCT_COMPAT_NIC_NAMES_H_
#define VIADUCT_COMPAT_NIC_NAMES_H_

#include <optional>
#include <string>

#include "verbs/base/address.h"

namespace viaduct::compat {

struct NicName {
  enum class Kind {
    kDefault,    // soft0, nic0, nic, VINIC, VINIC0, /dev/clanvi0
    kLoopback,   // /dev/via_lo, /etc/via_lo
    kInterface,  // /dev/via_NAME: that interface; if there is none and NAME ends in a number N, the N-th
    kUnknown,    // the name of an interface, its address, or anything else
  };
  Kind kind = Kind::kUnknown;
  std::string interface;  // kInterface: NAME; kUnknown: the whole name
  int index = -1;         // kInterface: N, from 0
};
NicName ParseNicName(const std::string& name);

// Null: no such NIC. With `any`, a name that means nothing is the default NIC.
std::optional<verbs::Address> AddressOfNic(const std::string& name, bool any);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NIC_NAMES_H_
