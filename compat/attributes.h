// Attributes of NIC, VI and memory, and what they mean to the engine.
#ifndef VIADUCT_COMPAT_ATTRIBUTES_H_
#define VIADUCT_COMPAT_ATTRIBUTES_H_

#include <vipl.h>

#include <cstdint>

#include "dat/core/connection_header.h"
#include "dat/core/endpoint.h"
#include "verbs/device.h"

namespace viaduct::compat {

// What a message without a receive does at each level: at the unreliable one it is dropped and
// reported, at the reliable ones it breaks the connection.
constexpr bool IsReliable(VIP_RELIABILITY_LEVEL level) { return level != VIP_SERVICE_UNRELIABLE; }
constexpr verbs::NoReceive NoReceiveOf(VIP_RELIABILITY_LEVEL level) {
  return IsReliable(level) ? verbs::NoReceive::kBreak : verbs::NoReceive::kDrop;
}
// Reliable reception: a request completes when its data is in place, with the peer's verdict.
constexpr uint16_t RequestFlagsOf(VIP_RELIABILITY_LEVEL level) {
  return level == VIP_SERVICE_RELIABLE_RECEPTION ? verbs::kConfirm : 0;
}

// What a NIC over that device advertises. LocalNicAddress is left to the caller.
VIP_NIC_ATTRIBUTES NicAttributesOf(const verbs::DeviceAttributes& device, const char* name);

// VIP_SUCCESS, VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_INVALID_QOS,
// VIP_INVALID_RDMAREAD. The tag is not checked.
VIP_RETURN CheckViAttributes(const VIP_VI_ATTRIBUTES& vi, const VIP_NIC_ATTRIBUTES& nic);
// VIP_SUCCESS, VIP_INVALID_RDMAREAD.
VIP_RETURN CheckMemAttributes(const VIP_MEM_ATTRIBUTES& memory, const VIP_NIC_ATTRIBUTES& nic);

core::EndpointAttributes EndpointAttributesOf(const VIP_VI_ATTRIBUTES& vi,
                                              const VIP_NIC_ATTRIBUTES& nic);
uint32_t AccessOf(const VIP_MEM_ATTRIBUTES& memory);

core::EndpointProfile ProfileOf(const VIP_VI_ATTRIBUTES& vi);
// The attributes of a peer. One that speaks DAT has none, and `own` is shown instead.
VIP_VI_ATTRIBUTES PeerAttributesOf(const core::EndpointProfile& peer, const VIP_VI_ATTRIBUTES& own);
// What VipConnectWait shows for a requester that speaks DAT: the attributes that most VIs have.
VIP_VI_ATTRIBUTES AnyAttributes(const VIP_NIC_ATTRIBUTES& nic);

// Checks that level, transfer size and QoS are the same on both ends: VIP_SUCCESS,
// VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_INVALID_QOS.
VIP_RETURN MatchProfiles(const core::EndpointProfile& own, const core::EndpointProfile& peer);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_ATTRIBUTES_H_
