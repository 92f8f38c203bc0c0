// The named attributes of an adapter: provider_specific_attr of DAT_PROVIDER_ATTR.
#ifndef VIADUCT_DAT_API_NAMED_ATTRIBUTES_H_
#define VIADUCT_DAT_API_NAMED_ATTRIBUTES_H_

#include "absl/types/span.h"
#include "dat/api/abi.h"
#include "verbs/device.h"

namespace viaduct::dat {

// The attributes of the version, then ours. Programs keep the pointers, so the list stays valid
// forever; adapters with the same attributes share one list.
absl::Span<const DAT_NAMED_ATTR> NamedAttributesOf(const verbs::DeviceAttributes& device);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_NAMED_ATTRIBUTES_H_
