#include "compat/attributes.h"

#include <limits>

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

verbs::DeviceAttributes Device() {
  verbs::DeviceAttributes device;
  device.max_queue_pairs = 65536;
  device.max_requests_per_queue = 16384;
  device.max_segments = 256;
  device.max_reads_in = 16;
  device.max_reads_out = 16;
  device.max_regions = 65536;
  device.max_region_bytes = UINT64_MAX;
  device.max_message_bytes = 1u << 31;
  return device;
}

VIP_NIC_ATTRIBUTES Nic() { return NicAttributesOf(Device(), "nic0"); }

VIP_VI_ATTRIBUTES Vi() {
  VIP_VI_ATTRIBUTES vi = {};
  vi.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  vi.MaxTransferSize = 65536;
  return vi;
}

// VIPL checklist C43 and the limits programs rely on.
TEST(AttributesTest, NicAdvertisesWhatProgramsNeed) {
  const VIP_NIC_ATTRIBUTES nic = Nic();
  EXPECT_STREQ(nic.Name, "nic0");
  EXPECT_EQ(nic.NicAddressLen, 6);
  EXPECT_EQ(nic.ThreadSafe, VIP_TRUE);
  EXPECT_EQ(nic.MaxDiscriminatorLen, 16);
  EXPECT_GE(nic.MaxVI, 1024u);
  EXPECT_GE(nic.MaxDescriptorsPerQueue, 1024u);
  EXPECT_GE(nic.MaxSegmentsPerDesc, 252u);
  EXPECT_GE(nic.MaxCQ, 1024u);
  EXPECT_GE(nic.MaxCQEntries, 65535u);
  EXPECT_GE(nic.MaxTransferSize, 16u << 20);
  EXPECT_GE(nic.MaxPtags, 1024u);
  EXPECT_EQ(nic.ReliabilityLevelSupport, 7);
  EXPECT_EQ(nic.RDMAReadSupport, 6);
}

// A VI costs address space for each descriptor, and a length is a VIP_LONG in old programs.
TEST(AttributesTest, NicHasLimitsOfItsOwn) {
  verbs::DeviceAttributes device = Device();
  device.max_requests_per_queue = device.max_segments = device.max_message_bytes = UINT32_MAX;
  const VIP_NIC_ATTRIBUTES nic = NicAttributesOf(device, "nic0");
  EXPECT_EQ(nic.MaxDescriptorsPerQueue, 1024u);
  EXPECT_EQ(nic.MaxSegmentsPerDesc, 252u);
  EXPECT_EQ(nic.MaxTransferSize, 16u << 20);
  EXPECT_EQ(nic.MaxRegisterBytes, static_cast<VIP_ULONG>(std::numeric_limits<VIP_LONG>::max()));
  EXPECT_EQ(nic.MaxRegisterBlockBytes, nic.MaxRegisterBytes);
}

TEST(AttributesTest, NicFollowsALesserDevice) {
  verbs::DeviceAttributes device = Device();
  device.max_reads_out = 0;
  device.max_segments = 30;
  device.max_message_bytes = 32768;
  const VIP_NIC_ATTRIBUTES nic = NicAttributesOf(device, std::string(100, 'x').c_str());
  EXPECT_EQ(nic.RDMAReadSupport, 0);
  EXPECT_EQ(nic.MaxSegmentsPerDesc, 30u);
  EXPECT_EQ(nic.MaxTransferSize, 32768u);
  EXPECT_EQ(std::string(nic.Name).size(), sizeof nic.Name - 1);
}

// VIPL checklist C44.
TEST(AttributesTest, ViAttributesHaveACodeEach) {
  EXPECT_EQ(CheckViAttributes(Vi(), Nic()), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES vi = Vi();
  vi.ReliabilityLevel = 3;  // two levels
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_INVALID_RELIABILITY_LEVEL);
  vi.ReliabilityLevel = 0;
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_INVALID_RELIABILITY_LEVEL);
  VIP_NIC_ATTRIBUTES unreliable = Nic();
  unreliable.ReliabilityLevelSupport = VIP_SERVICE_UNRELIABLE;
  EXPECT_EQ(CheckViAttributes(Vi(), unreliable), VIP_INVALID_RELIABILITY_LEVEL);
  vi = Vi();
  vi.MaxTransferSize = Nic().MaxTransferSize + 1;
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_INVALID_MTU);
  vi.MaxTransferSize = 0;
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_INVALID_MTU);
  vi = Vi();
  vi.QoS = reinterpret_cast<VIP_QOS>(uintptr_t{1} << 40);
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_INVALID_QOS);
  vi = Vi();
  vi.EnableRdmaRead = VIP_TRUE;
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_SUCCESS);
  vi.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
  EXPECT_EQ(CheckViAttributes(vi, Nic()), VIP_INVALID_RDMAREAD);
}

TEST(AttributesTest, RdmaReadOfMemoryNeedsSupport) {
  VIP_MEM_ATTRIBUTES memory = {};
  memory.EnableRdmaRead = VIP_TRUE;
  EXPECT_EQ(CheckMemAttributes(memory, Nic()), VIP_SUCCESS);
  VIP_NIC_ATTRIBUTES nic = Nic();
  nic.RDMAReadSupport = 0;
  EXPECT_EQ(CheckMemAttributes(memory, nic), VIP_INVALID_RDMAREAD);
}

TEST(AttributesTest, LevelsOfTheEngine) {
  EXPECT_EQ(NoReceiveOf(VIP_SERVICE_UNRELIABLE), verbs::NoReceive::kDrop);
  EXPECT_EQ(NoReceiveOf(VIP_SERVICE_RELIABLE_DELIVERY), verbs::NoReceive::kBreak);
  EXPECT_EQ(NoReceiveOf(VIP_SERVICE_RELIABLE_RECEPTION), verbs::NoReceive::kBreak);
  EXPECT_EQ(RequestFlagsOf(VIP_SERVICE_UNRELIABLE), 0);
  EXPECT_EQ(RequestFlagsOf(VIP_SERVICE_RELIABLE_DELIVERY), 0);
  EXPECT_EQ(RequestFlagsOf(VIP_SERVICE_RELIABLE_RECEPTION), verbs::kConfirm);
}

TEST(AttributesTest, EndpointOfAVi) {
  VIP_VI_ATTRIBUTES vi = Vi();
  vi.EnableRdmaWrite = VIP_TRUE;
  core::EndpointAttributes attributes = EndpointAttributesOf(vi, Nic());
  EXPECT_TRUE(attributes.keep_receives_on_failure);
  EXPECT_TRUE(attributes.flush_on_unreachable);
  EXPECT_EQ(attributes.remote_access, static_cast<uint32_t>(verbs::kRemoteWrite));
  EXPECT_EQ(attributes.max_sends, Nic().MaxDescriptorsPerQueue);
  EXPECT_EQ(attributes.max_receives, Nic().MaxDescriptorsPerQueue);
  EXPECT_EQ(attributes.max_send_segments, Nic().MaxSegmentsPerDesc);
  EXPECT_EQ(attributes.max_receive_segments, Nic().MaxSegmentsPerDesc);
  EXPECT_EQ(attributes.max_message_bytes, 65536u);
  EXPECT_EQ(attributes.no_receive, verbs::NoReceive::kBreak);
  vi.EnableRdmaRead = VIP_TRUE;
  attributes = EndpointAttributesOf(vi, Nic());
  EXPECT_EQ(attributes.remote_access,
            static_cast<uint32_t>(verbs::kRemoteRead | verbs::kRemoteWrite));
  vi.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
  attributes = EndpointAttributesOf(vi, Nic());
  EXPECT_FALSE(attributes.flush_on_unreachable);
}

TEST(AttributesTest, RightsOfMemory) {
  VIP_MEM_ATTRIBUTES memory = {};
  EXPECT_EQ(AccessOf(memory), static_cast<uint32_t>(verbs::kLocalRead | verbs::kLocalWrite));
  const uint32_t local = AccessOf(memory);
  memory.EnableRdmaWrite = VIP_TRUE;
  EXPECT_EQ(AccessOf(memory), local | verbs::kRemoteWrite);
  memory.EnableRdmaRead = VIP_TRUE;
  EXPECT_EQ(AccessOf(memory), local | verbs::kRemoteWrite | verbs::kRemoteRead);
}

TEST(AttributesTest, ProfileCarriesTheAttributes) {
  VIP_VI_ATTRIBUTES vi = Vi();
  vi.EnableRdmaWrite = VIP_TRUE;
  vi.QoS = reinterpret_cast<VIP_QOS>(uintptr_t{5});
  vi.Ptag = &vi;
  const VIP_VI_ATTRIBUTES peer = PeerAttributesOf(ProfileOf(vi), Vi());
  EXPECT_EQ(peer.ReliabilityLevel, vi.ReliabilityLevel);
  EXPECT_EQ(peer.MaxTransferSize, vi.MaxTransferSize);
  EXPECT_EQ(peer.QoS, vi.QoS);
  EXPECT_EQ(peer.EnableRdmaWrite, VIP_TRUE);
  EXPECT_EQ(peer.EnableRdmaRead, VIP_FALSE);
  EXPECT_EQ(peer.Ptag, nullptr) << "a tag means nothing on the other side";
  vi.EnableRdmaWrite = VIP_FALSE;
  vi.EnableRdmaRead = VIP_TRUE;
  const VIP_VI_ATTRIBUTES reader = PeerAttributesOf(ProfileOf(vi), Vi());
  EXPECT_EQ(reader.EnableRdmaWrite, VIP_FALSE);
  EXPECT_EQ(reader.EnableRdmaRead, VIP_TRUE);
}

TEST(AttributesTest, ADatPeerShowsOurOwn) {
  const VIP_VI_ATTRIBUTES peer = PeerAttributesOf(core::EndpointProfile(), Vi());
  EXPECT_EQ(peer.ReliabilityLevel, Vi().ReliabilityLevel);
  EXPECT_EQ(peer.MaxTransferSize, Vi().MaxTransferSize);
}

TEST(AttributesTest, AWaiterSeesOfADatPeerWhatMostVisAskFor) {
  VIP_NIC_ATTRIBUTES nic = Nic();
  VIP_VI_ATTRIBUTES any = AnyAttributes(nic);
  EXPECT_EQ(any.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
  EXPECT_EQ(any.MaxTransferSize, nic.MaxTransferSize);
  EXPECT_EQ(any.QoS, nullptr);
  EXPECT_EQ(any.EnableRdmaWrite, VIP_TRUE);
  EXPECT_EQ(any.EnableRdmaRead, VIP_TRUE);
  nic.RDMAReadSupport = 0;
  any = AnyAttributes(nic);
  EXPECT_EQ(any.EnableRdmaRead, VIP_FALSE);
  EXPECT_EQ(CheckViAttributes(any, nic), VIP_SUCCESS);
}

// VIPL checklist C25, C26, C27.
TEST(AttributesTest, ProfilesMatchInLevelSizeAndQos) {
  const core::EndpointProfile own = ProfileOf(Vi());
  EXPECT_EQ(MatchProfiles(own, own), VIP_SUCCESS);
  EXPECT_EQ(MatchProfiles(own, core::EndpointProfile()), VIP_SUCCESS);
  core::EndpointProfile peer = own;
  peer.rdma_read_enabled = !peer.rdma_read_enabled;
  EXPECT_EQ(MatchProfiles(own, peer), VIP_SUCCESS);
  peer.qos = 9;
  EXPECT_EQ(MatchProfiles(own, peer), VIP_INVALID_QOS);
  peer.max_transfer_size = 1;
  EXPECT_EQ(MatchProfiles(own, peer), VIP_INVALID_MTU);
  peer.reliability = VIP_SERVICE_UNRELIABLE;
  EXPECT_EQ(MatchProfiles(own, peer), VIP_INVALID_RELIABILITY_LEVEL);
}

}  // namespace
}  // namespace viaduct::compat
