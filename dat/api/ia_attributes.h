// DAT_IA_ATTR and DAT_PROVIDER_ATTR of an open adapter.
#ifndef VIADUCT_DAT_API_IA_ATTRIBUTES_H_
#define VIADUCT_DAT_API_IA_ATTRIBUTES_H_

#include <string>

#include "dat/api/abi.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::dat {

// All members are set, whatever was asked for. `attributes` points to `address`, which is not
// copied.
void ShowAdapter(const std::string& name, const verbs::Address& address,
                 const verbs::DeviceAttributes& device, DAT_IA_ATTR* attributes);
void ShowProvider(const verbs::DeviceAttributes& device, uint32_t max_private_data,
                  DAT_PROVIDER_ATTR* attributes);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_IA_ATTRIBUTES_H_
