// uDAPL 1.2. Include abi.h.
#ifndef VIADUCT_DAT_API_ABI_12_H_
#define VIADUCT_DAT_API_ABI_12_H_

#include <dat/dat_registry.h>
#include <dat/udat.h>

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/types/span.h"
#include "dat/api/error_names.h"
#include "dat/core/event.h"
#include "verbs/device.h"

namespace viaduct::dat {

inline constexpr Version kVersion = Version::k12;
inline constexpr uint32_t kMajor = 1;
inline constexpr uint32_t kMinor = 2;

// 1.2 has no atomics.
inline constexpr unsigned kAtomicPrivilege = 0;

// Streams that a dispatcher may have in addition to the engine's.
inline constexpr uint32_t kExtensionStreams = 0;

inline constexpr unsigned kMultipathFlags = DAT_CONNECT_MULTIPATH_FLAG;

// Members of DAT_EP_PARAM that dat_ep_modify never changes.
inline constexpr DAT_EP_PARAM_MASK kFixedEpFields =
    DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR |
    DAT_EP_FIELD_LOCAL_PORT_QUAL | DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR |
    DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE;

// The handle type of a common service point. 1.2 has none, although 2.0 may have created such a
// point in this process.
inline constexpr std::optional<DAT_HANDLE_TYPE> kCommonPoint;

// Bits of DAT_CNO_PARAM_MASK.
inline constexpr unsigned kCnoFields = DAT_CNO_FIELD_ALL;

inline void ShowProxy(const DAT_OS_WAIT_PROXY_AGENT& agent, int, DAT_CNO_PARAM* param) {
  param->agent = agent;
}

// False if the segment is longer than any message.
inline bool ToSegment(const DAT_LMR_TRIPLET& triplet, verbs::Segment* segment) {
  *segment = {triplet.virtual_address, triplet.lmr_context,
              static_cast<uint32_t>(triplet.segment_length)};
  return triplet.segment_length <= std::numeric_limits<uint32_t>::max();
}
inline void SetSegmentLength(uint64_t length, DAT_LMR_TRIPLET* triplet) {
  triplet->segment_length = length;
}
inline uint64_t TargetAddress(const DAT_RMR_TRIPLET& triplet) { return triplet.target_address; }

// 1.2 cannot name a receive that the peer's write with immediate data consumed. It reports the
// bytes that the receive's buffers hold: none, since the write placed its data elsewhere.
inline void SetVersionFields(const core::Event& event, DAT_EVENT* out) {
  if (event.opcode == verbs::Opcode::kReceiveWrite) [[unlikely]]
    out->event_data.dto_completion_event_data.transfered_length = 0;
}
// Members that only 2.0 has: nothing to set.
inline void SetVersionFields(DAT_CR_ARRIVAL_EVENT_DATA*) {}
inline void SetVersionFields(verbs::AddressBase, DAT_LMR_PARAM*) {}
inline void SetVersionFields(verbs::WindowScope, verbs::AddressBase, DAT_RMR_PARAM*) {}
inline void SetVersionFields(DAT_EP_PARAM*) {}
inline void SetVersionFields(const verbs::DeviceAttributes&, DAT_IA_ATTR*) {}
inline void SetVersionFields(const verbs::DeviceAttributes&, DAT_PROVIDER_ATTR*) {}

// Attributes that programs look up by name although the standard covers them.
inline constexpr DAT_NAMED_ATTR kNamedAttributes[] = {
    {"DAT_IB_TRANSPORT_MTU", "4096"},
    {"DAT_IB_RDMA_READ", "TRUE"},
};
inline absl::Span<const DAT_NAMED_ATTR> VersionAttributesOf(const verbs::DeviceAttributes&) {
  return kNamedAttributes;
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ABI_12_H_
