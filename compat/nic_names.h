// Which interface and device the name of a NIC means: programs carry the names of devices long
// gone.
#ifndef VIADUCT_COMPAT_NIC_NAMES_H_
#define VIADUCT_COMPAT_NIC_NAMES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compat/nic_file.h"
#include "dat/core/error.h"
#include "verbs/base/address.h"
#include "verbs/base/interfaces.h"
#include "verbs/device.h"
#include "verbs/rdma_adapter.h"

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

// The address that the name means on a host with `interfaces`. Null: the name means nothing.
std::optional<verbs::Address> AddressOfNic(const std::string& name,
                                           const std::vector<verbs::Interface>& interfaces,
                                           const verbs::Address& default_address);

// As in verbs/open_device.h. Called only when needed, since finding adapters opens rdma-core.
struct RdmaNames {
  std::function<std::vector<verbs::RdmaAdapter>()> adapters;
  std::function<bool(const std::string& name)> names_device;
};

struct NicChoice {
  verbs::Address address;
  std::string device = verbs::kAnyDevice;
};

// Looks the name up in the file first, then with AddressOfNic, then among the RDMA adapters, then
// in the file's catch-all; last, with `any`, it is the default NIC. A name that the file lists as
// "none" or with an interface that is not there is no NIC, whatever else is known of it. kNotFound:
// the name means nothing; kInsufficientResources: it names an RDMA device that this process may not
// or cannot use.
core::Error ChooseNic(const std::string& name, const NicFile& file, bool any,
                      const std::vector<verbs::Interface>& interfaces,
                      const verbs::Address& default_address, const RdmaNames& rdma,
                      NicChoice* choice);

// The same by this host's settings. kInsufficientResources also if the kernel could not be asked.
core::Error ChooseNic(const std::string& name, NicChoice* choice);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_NIC_NAMES_H_
