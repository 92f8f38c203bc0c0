// uDAPL 2.0. Include abi.h.
#ifndef VIADUCT_DAT_API_ABI_20_H_
#define VIADUCT_DAT_API_ABI_20_H_

#include <dat2/dat_registry.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "dat/api/error_names.h"
#include "verbs/device.h"

namespace viaduct::dat {

inline constexpr Version kVersion = Version::k20;
inline constexpr uint32_t kMajor = 2;
inline constexpr uint32_t kMinor = 0;

inline constexpr unsigned kMultipathFlags =
    DAT_CONNECT_MULTIPATH_REQUESTED_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG;

// Members of DAT_EP_PARAM that dat_ep_modify never changes.
inline constexpr DAT_EP_PARAM_MASK kFixedEpFields =
    DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_COMM |
    DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
    DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE;

// Of a common service point.
inline constexpr std::optional<DAT_HANDLE_TYPE> kCommonPoint = DAT_HANDLE_TYPE_CSP;

// DAT_CNO_PARAM_MASK's values are no bit set (PROXY is 3, ALL is 4), so any of them goes.
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
inline uint64_t TargetAddress(const DAT_RMR_TRIPLET& triplet) { return triplet.virtual_address; }

inline DAT_DTOS ToOperation(verbs::Opcode opcode) {
  switch (opcode) {
    case verbs::Opcode::kSend:
      return DAT_DTO_SEND;
    case verbs::Opcode::kWrite:
      return DAT_DTO_RDMA_WRITE;
    case verbs::Opcode::kRead:
      return DAT_DTO_RDMA_READ;
    case verbs::Opcode::kBind:
      return DAT_DTO_BIND_MW;
    case verbs::Opcode::kReceiveInvalidate:
      return DAT_DTO_RECEIVE_WITH_INVALIDATE;
    case verbs::Opcode::kSendInvalidate:
      return DAT_DTO_SEND;
    case verbs::Opcode::kCompareAndSwap:
    case verbs::Opcode::kFetchAndAdd:
      return DAT_DTO_EXTENSION_BASE;
    case verbs::Opcode::kReceive:
    case verbs::Opcode::kReceiveWrite:
      break;
  }
  return DAT_DTO_RECEIVE;
}

// The members that 1.2 lacks.
inline void SetVersionFields(verbs::Opcode opcode, DAT_DTO_COMPLETION_EVENT_DATA* data) {
  data->operation = ToOperation(opcode);
  data->rmr_context = 0;
}
inline void SetVersionFields(DAT_CR_ARRIVAL_EVENT_DATA* data) { data->truncate_flag = DAT_FALSE; }
inline void SetVersionFields(DAT_LMR_PARAM* param) { param->va_type = DAT_VA_TYPE_VA; }
inline void SetVersionFields(DAT_EP_PARAM* param) {
  param->comm = {param->local_ia_address_ptr->sa_family, SOCK_STREAM, IPPROTO_TCP};
}
inline void SetVersionFields(DAT_IA_ATTR* attributes) {
  attributes->zb_supported = DAT_FALSE;
  attributes->extension_supported = DAT_EXTENSION_NONE;
  attributes->extension_version = 0;
}
inline void SetVersionFields(DAT_PROVIDER_ATTR* attributes) {
  attributes->rdma_read_lmr_rmr_context_exposure = DAT_TRUE;  // iWARP names the sink on the wire
  attributes->rmr_scope_supported = DAT_RMR_SCOPE_PZ;
  attributes->is_signal_safe = DAT_FALSE;
  attributes->ha_supported = DAT_FALSE;
  attributes->ha_loadbalancing = DAT_HA_LB_NONE;
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ABI_20_H_
