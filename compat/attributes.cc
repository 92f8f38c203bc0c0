#include "compat/attributes.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compat/result.h"
#include "dat/core/peer_match.h"

namespace viaduct::compat {
namespace {

// A VI costs address space for each descriptor its queues may hold; programs use at most hundreds.
constexpr uint32_t kMaxDescriptors = 1024;
constexpr uint32_t kMaxSegments = 252;
constexpr uint32_t kMaxTransfer = 16u << 20;
constexpr uint32_t kMaxCompletionEntries = 1u << 20;
constexpr uint32_t kNativeMtu = 4096;
constexpr uint32_t kMaxTags = 65536;

// VIP_QOS is a pointer whose contents the specification leaves open: the pointer itself is
// compared, and 32 bits of it travel to the peer.
uint64_t QosBits(VIP_QOS qos) { return reinterpret_cast<uintptr_t>(qos); }

bool IsLevel(VIP_RELIABILITY_LEVEL level) {
  return level == VIP_SERVICE_UNRELIABLE || level == VIP_SERVICE_RELIABLE_DELIVERY ||
         level == VIP_SERVICE_RELIABLE_RECEPTION;
}

VIP_VI_ATTRIBUTES AttributesOf(const core::EndpointProfile& profile) {
  VIP_VI_ATTRIBUTES vi = {};
  vi.ReliabilityLevel = profile.reliability;
  vi.MaxTransferSize = profile.max_transfer_size;
  vi.QoS = reinterpret_cast<VIP_QOS>(static_cast<uintptr_t>(profile.qos));
  vi.EnableRdmaWrite = profile.rdma_write_enabled ? VIP_TRUE : VIP_FALSE;
  vi.EnableRdmaRead = profile.rdma_read_enabled ? VIP_TRUE : VIP_FALSE;
  return vi;
}

}  // namespace

VIP_NIC_ATTRIBUTES NicAttributesOf(const verbs::DeviceAttributes& device, const char* name) {
  VIP_NIC_ATTRIBUTES nic = {};
  std::strncpy(nic.Name, name, sizeof nic.Name - 1);
  nic.HardwareVersion = 1;
  nic.ProviderVersion = 1;
  nic.NicAddressLen = 6;
  nic.ThreadSafe = VIP_TRUE;
  nic.MaxDiscriminatorLen = core::kMaxNameBytes;
  const uint64_t largest =
      std::min<uint64_t>(device.max_region_bytes, std::numeric_limits<VIP_LONG>::max());
  nic.MaxRegisterBytes = static_cast<VIP_ULONG>(largest);
  nic.MaxRegisterRegions = device.max_regions;
  nic.MaxRegisterBlockBytes = static_cast<VIP_ULONG>(largest);
  nic.MaxVI = device.max_queue_pairs;
  nic.MaxDescriptorsPerQueue = std::min(device.max_requests_per_queue, kMaxDescriptors);
  nic.MaxSegmentsPerDesc = std::min(device.max_segments, kMaxSegments);
  nic.MaxCQ = device.max_queue_pairs;
  nic.MaxCQEntries = kMaxCompletionEntries;
  nic.MaxTransferSize = std::min(device.max_message_bytes, kMaxTransfer);
  nic.NativeMTU = kNativeMtu;
  nic.MaxPtags = kMaxTags;
  nic.ReliabilityLevelSupport =
      VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
  nic.RDMAReadSupport = device.max_reads_out == 0
                            ? 0
                            : VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
  return nic;
}

VIP_RETURN CheckViAttributes(const VIP_VI_ATTRIBUTES& vi, const VIP_NIC_ATTRIBUTES& nic) {
  if (!IsLevel(vi.ReliabilityLevel) || (vi.ReliabilityLevel & nic.ReliabilityLevelSupport) == 0) {
    return VIP_INVALID_RELIABILITY_LEVEL;
  }
  if (vi.MaxTransferSize == 0 || vi.MaxTransferSize > nic.MaxTransferSize) return VIP_INVALID_MTU;
  if (QosBits(vi.QoS) > std::numeric_limits<uint32_t>::max()) return VIP_INVALID_QOS;
  if (vi.EnableRdmaRead && (vi.ReliabilityLevel & nic.RDMAReadSupport) == 0) {
    return VIP_INVALID_RDMAREAD;
  }
  return VIP_SUCCESS;
}

VIP_RETURN CheckMemAttributes(const VIP_MEM_ATTRIBUTES& memory, const VIP_NIC_ATTRIBUTES& nic) {
  return memory.EnableRdmaRead && nic.RDMAReadSupport == 0 ? VIP_INVALID_RDMAREAD : VIP_SUCCESS;
}

core::EndpointAttributes EndpointAttributesOf(const VIP_VI_ATTRIBUTES& vi,
                                              const VIP_NIC_ATTRIBUTES& nic) {
  core::EndpointAttributes attributes;
  attributes.max_sends = static_cast<uint32_t>(nic.MaxDescriptorsPerQueue);
  attributes.max_receives = static_cast<uint32_t>(nic.MaxDescriptorsPerQueue);
  attributes.max_send_segments = static_cast<uint32_t>(nic.MaxSegmentsPerDesc);
  attributes.max_receive_segments = static_cast<uint32_t>(nic.MaxSegmentsPerDesc);
  attributes.max_message_bytes = static_cast<uint32_t>(vi.MaxTransferSize);
  attributes.no_receive = NoReceiveOf(vi.ReliabilityLevel);
  attributes.remote_access = (vi.EnableRdmaRead ? verbs::kRemoteRead : 0u) |
                             (vi.EnableRdmaWrite ? verbs::kRemoteWrite : 0u);
  attributes.keep_receives_on_failure = true;
  attributes.flush_on_unreachable = IsReliable(vi.ReliabilityLevel);
  return attributes;
}

uint32_t AccessOf(const VIP_MEM_ATTRIBUTES& memory) {
  return verbs::kLocalRead | verbs::kLocalWrite |
         (memory.EnableRdmaRead ? verbs::kRemoteRead : 0u) |
         (memory.EnableRdmaWrite ? verbs::kRemoteWrite : 0u);
}

core::EndpointProfile ProfileOf(const VIP_VI_ATTRIBUTES& vi) {
  core::EndpointProfile profile;
  profile.any = false;
  profile.reliability = static_cast<uint8_t>(vi.ReliabilityLevel);
  profile.rdma_write_enabled = vi.EnableRdmaWrite != VIP_FALSE;
  profile.rdma_read_enabled = vi.EnableRdmaRead != VIP_FALSE;
  profile.max_transfer_size = static_cast<uint32_t>(vi.MaxTransferSize);
  profile.qos = static_cast<uint32_t>(QosBits(vi.QoS));
  return profile;
}

VIP_VI_ATTRIBUTES PeerAttributesOf(const core::EndpointProfile& peer,
                                   const VIP_VI_ATTRIBUTES& own) {
  return AttributesOf(peer.any ? ProfileOf(own) : peer);
}

VIP_VI_ATTRIBUTES AnyAttributes(const VIP_NIC_ATTRIBUTES& nic) {
  VIP_VI_ATTRIBUTES vi = {};
  vi.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  vi.MaxTransferSize = nic.MaxTransferSize;
  vi.EnableRdmaWrite = VIP_TRUE;
  vi.EnableRdmaRead = nic.RDMAReadSupport != 0 ? VIP_TRUE : VIP_FALSE;
  return vi;
}

VIP_RETURN MatchProfiles(const core::EndpointProfile& own, const core::EndpointProfile& peer) {
  const core::PeerMismatch mismatch = core::Compare(own, peer);
  return mismatch == core::PeerMismatch::kNone ? VIP_SUCCESS : ResultOf(mismatch);
}

}  // namespace viaduct::compat
