#include "verbs/open_device.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verbs/base/interfaces.h"
#include "verbs/soft/open.h"

namespace viaduct::verbs {

absl::StatusOr<std::unique_ptr<Context>> OpenDevice(const Address& address,
                                                    const std::string& name) {
  const std::vector<Interface> interfaces = ListInterfaces();
  const bool ours =
      address.IsLoopback() || std::any_of(interfaces.begin(), interfaces.end(),
                                          [&](const Interface& i) { return i.address == address; });
  if (!ours) {
    return absl::NotFoundError(absl::StrCat("no interface has the address ", address.ToString()));
  }
  if (name != kAnyDevice && name != "shm" && name != "iwarp") {
    return absl::NotFoundError(absl::StrCat("there is no device ", name));
  }
  return OpenSoftDevice(address, name);
}

}  // namespace viaduct::verbs
