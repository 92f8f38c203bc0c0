// uDAPL 2.0. Include abi.h.
#ifndef VIADUCT_DAT_API_ABI_20_H_
#define VIADUCT_DAT_API_ABI_20_H_

#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <dat2/udat.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/types/span.h"
#include "dat/api/error_names.h"
#include "dat/core/event.h"
#include "verbs/device.h"

namespace viaduct::dat {

inline constexpr Version kVersion = Version::k20;
inline constexpr uint32_t kMajor = 2;
inline constexpr uint32_t kMinor = 0;

inline constexpr unsigned kAtomicPrivilege = DAT_IB_MEM_PRIV_REMOTE_ATOMIC;

// Streams that a dispatcher may have in addition to the engine's. This flag has no effect: events
// of extensions arrive where their endpoint's completions do.
inline constexpr uint32_t kExtensionStreams = DAT_IB_EVD_EXTENSION_FLAG;

inline constexpr unsigned kMultipathFlags =
    DAT_CONNECT_MULTIPATH_REQUESTED_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;

// Members of DAT_EP_PARAM that dat_ep_modify never changes.
inline constexpr DAT_EP_PARAM_MASK kFixedEpFields =
    DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_COMM |
    DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
    DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE;

// The handle type of a common service point.
inline constexpr std::optional<DAT_HANDLE_TYPE> kCommonPoint = DAT_HANDLE_TYPE_CSP;

// The values of DAT_CNO_PARAM_MASK are not single bits (PROXY is 3, ALL is 4), so any combination
// is accepted.
inline constexpr unsigned kCnoFields = 7;

inline void ShowProxy(const DAT_OS_WAIT_PROXY_AGENT& agent, int descriptor, DAT_CNO_PARAM* param) {
  param->proxy = {};
  if (descriptor >= 0) {
    param->proxy_type = DAT_PROXY_TYPE_FD;
    param->proxy.fd = descriptor;
  } else if (agent.proxy_agent_func != nullptr) {
    param->proxy_type = DAT_PROXY_TYPE_AGENT;
    param->proxy.agent = agent;
  } else {
    param->proxy_type = DAT_PROXY_TYPE_NONE;
  }
}

// False if the segment is longer than any message.
inline bool ToSegment(const DAT_LMR_TRIPLET& triplet, verbs::Segment* segment) {
  *segment = {triplet.virtual_address, triplet.lmr_context, triplet.segment_length};
  return true;
}
inline void SetSegmentLength(uint64_t length, DAT_LMR_TRIPLET* triplet) {
  triplet->segment_length = static_cast<DAT_SEG_LENGTH>(length);
}
inline uint64_t TargetAddress(const DAT_RMR_TRIPLET& triplet) { return triplet.virtual_address; }

// The operation of a completion, which may be one of the extensions.
inline int ToOperation(const core::Event& event) {
  if (event.has_immediate) [[unlikely]] {
    if (event.opcode == verbs::Opcode::kWrite) return DAT_IB_DTO_RDMA_WRITE_IMMED;
    if (event.opcode == verbs::Opcode::kReceiveWrite) return DAT_IB_DTO_RECV_IMMED;
  }
  switch (event.opcode) {
    case verbs::Opcode::kSend:
    case verbs::Opcode::kSendInvalidate:
      return DAT_DTO_SEND;
    case verbs::Opcode::kWrite:
      return DAT_DTO_RDMA_WRITE;
    case verbs::Opcode::kRead:
      return DAT_DTO_RDMA_READ;
    case verbs::Opcode::kBind:
      return DAT_DTO_BIND_MW;
    case verbs::Opcode::kReceiveInvalidate:
      return DAT_DTO_RECEIVE_WITH_INVALIDATE;
    case verbs::Opcode::kCompareAndSwap:
      return DAT_IB_DTO_CMP_SWAP;
    case verbs::Opcode::kFetchAndAdd:
      return DAT_IB_DTO_FETCH_ADD;
    case verbs::Opcode::kReceiveWrite:
    case verbs::Opcode::kReceive:
      break;
  }
  return DAT_DTO_RECEIVE;
}

// Turns the event into one for an extension's operation.
[[gnu::noinline]] inline void SetExtension(const core::Event& event, int operation,
                                           DAT_EVENT* out) {
  out->event_number = static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT);
  DAT_IB_EXTENSION_EVENT_DATA extension = {};
  extension.type = operation == DAT_IB_DTO_RDMA_WRITE_IMMED ? DAT_IB_RDMA_WRITE_IMMED
                   : operation == DAT_IB_DTO_RECV_IMMED     ? DAT_IB_RDMA_WRITE_IMMED_DATA
                   : operation == DAT_IB_DTO_FETCH_ADD      ? DAT_IB_FETCH_AND_ADD
                                                            : DAT_IB_CMP_AND_SWAP;
  extension.status = event.status == verbs::Status::kSuccess ? DAT_OP_SUCCESS : DAT_IB_OP_ERR;
  extension.val.immed.data = event.immediate;
  std::memcpy(out->event_extension_data, &extension, sizeof extension);
}
// The members that 1.2 lacks.
inline void SetVersionFields(const core::Event& event, DAT_EVENT* out) {
  DAT_DTO_COMPLETION_EVENT_DATA& data = out->event_data.dto_completion_event_data;
  const int operation = ToOperation(event);
  data.operation = static_cast<DAT_DTOS>(operation);
  data.rmr_context =
      event.opcode == verbs::Opcode::kReceiveInvalidate ? DAT_RMR_CONTEXT{event.immediate} : 0;
  if (operation >= DAT_DTO_EXTENSION_BASE) [[unlikely]]
    SetExtension(event, operation, out);
}
inline void SetVersionFields(DAT_CR_ARRIVAL_EVENT_DATA* data) { data->truncate_flag = DAT_FALSE; }
inline DAT_VA_TYPE ToAddressType(verbs::AddressBase base) {
  return base == verbs::AddressBase::kZero ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}
inline void SetVersionFields(verbs::AddressBase base, DAT_LMR_PARAM* param) {
  param->va_type = ToAddressType(base);
}
inline void SetVersionFields(verbs::WindowScope scope, verbs::AddressBase base,
                             DAT_RMR_PARAM* param) {
  param->rmr_scope = scope == verbs::WindowScope::kQueuePair ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ;
  param->va_type = ToAddressType(base);
}
inline void SetVersionFields(DAT_EP_PARAM* param) {
  param->comm = {param->local_ia_address_ptr->sa_family, SOCK_STREAM, IPPROTO_TCP};
}
inline void SetVersionFields(const verbs::DeviceAttributes& device, DAT_IA_ATTR* attributes) {
  attributes->zb_supported = device.zero_based ? DAT_TRUE : DAT_FALSE;
  attributes->extension_supported = DAT_EXTENSION_IB;
  attributes->extension_version = DAT_IB_EXTENSION_VERSION;
}
inline void SetVersionFields(const verbs::DeviceAttributes& device, DAT_PROVIDER_ATTR* attributes) {
  attributes->rdma_read_lmr_rmr_context_exposure = DAT_TRUE;  // iWARP names the sink on the wire
  attributes->rmr_scope_supported = device.pair_windows ? DAT_RMR_SCOPE_ANY : DAT_RMR_SCOPE_PZ;
  attributes->is_signal_safe = DAT_FALSE;
  attributes->ha_supported = DAT_FALSE;
  attributes->ha_loadbalancing = DAT_HA_LB_NONE;
}

// Attributes that programs look up by name: the extensions that exist (datagrams and collectives do
// not), and what the standard covers. Those that a device may lack are at the ends of the list.
inline constexpr DAT_NAMED_ATTR kNamedAttributes[] = {
    {DAT_IB_ATTR_FETCH_AND_ADD, "TRUE"}, {DAT_IB_ATTR_CMP_AND_SWAP, "TRUE"},
    {"DAT_IB_TRANSPORT_MTU", "4096"},    {"DAT_IB_RDMA_READ", "TRUE"},
    {DAT_IB_ATTR_COUNTERS, "TRUE"},      {DAT_IB_ATTR_IMMED_DATA, "TRUE"},
};
inline absl::Span<const DAT_NAMED_ATTR> VersionAttributesOf(const verbs::DeviceAttributes& device) {
  absl::Span<const DAT_NAMED_ATTR> named = kNamedAttributes;
  if (!device.atomics) named.remove_prefix(2);
  if (!device.immediate_data) named.remove_suffix(1);
  return named;
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ABI_20_H_
