#include "dat/api/ia_attributes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace viaduct::dat {
namespace {

TEST(IaAttributes, AdapterShowsTheDevice) {
  verbs::DeviceAttributes device;
  device.max_queue_pairs = 100;
  device.max_requests_per_queue = 1000;
  device.max_segments = 5000;
  device.max_reads_in = 16;
  device.max_reads_out = 8;
  device.max_regions = 0xffffffff;
  device.max_region_bytes = uint64_t{1} << 40;
  device.max_message_bytes = 0xffffffff;
  device.max_shared_queues = 7;
  device.max_shared_receives = 300;
  const verbs::Address address = verbs::Address::V4(0x0a000001);
  DAT_IA_ATTR shown;
  memset(&shown, 0xee, sizeof shown);
  ShowAdapter("soft0", address, device, &shown);
  EXPECT_STREQ(shown.adapter_name, "soft0");
  EXPECT_EQ(shown.ia_address_ptr, address.data());
  EXPECT_EQ(shown.max_eps, 100);
  EXPECT_EQ(shown.max_dto_per_ep, 1000);
  EXPECT_EQ(shown.max_iov_segments_per_dto, 64);  // the face's own limit
  EXPECT_EQ(shown.max_rdma_read_per_ep_in, 16);
  EXPECT_EQ(shown.max_rdma_read_per_ep_out, 8);
  EXPECT_EQ(shown.max_rdma_read_in, 1600);
  EXPECT_EQ(shown.max_rdma_read_out, 800);
  EXPECT_EQ(shown.max_lmrs, 0x7fffffff);  // as large as the type allows
  EXPECT_EQ(shown.max_message_size, 0xffffffffu);
  EXPECT_EQ(shown.max_rmrs, 0x7fffffff);
  EXPECT_EQ(shown.max_srqs, 7);
  EXPECT_EQ(shown.max_ep_per_srq, 100);
  EXPECT_EQ(shown.max_recv_per_srq, 300);
  EXPECT_EQ(shown.num_vendor_attr, 0);
}

TEST(IaAttributes, ProviderHoldsTheMinima) {
  DAT_PROVIDER_ATTR shown;
  memset(&shown, 0xee, sizeof shown);
  ShowProvider(verbs::DeviceAttributes(), 64, &shown);
  EXPECT_EQ(shown.max_private_data_size, 64);
  EXPECT_EQ(shown.dapl_version_major, kMajor);
  EXPECT_EQ(shown.dapl_version_minor, kMinor);
  EXPECT_EQ(DAT_OPTIMAL_ALIGNMENT % shown.optimal_buffer_alignment, 0u);
  for (int stream = 0; stream < 6; ++stream) {
    EXPECT_EQ(shown.evd_stream_merging_supported[stream][stream], DAT_TRUE);
  }
  EXPECT_EQ(shown.is_thread_safe, DAT_TRUE);
  ASSERT_GT(shown.num_provider_specific_attr, 0);
  for (DAT_COUNT i = 0; i < shown.num_provider_specific_attr; ++i) {
    EXPECT_NE(shown.provider_specific_attr[i].name, nullptr);
    EXPECT_NE(shown.provider_specific_attr[i].value, nullptr);
  }
}

const char* Named(const DAT_PROVIDER_ATTR& provider, const std::string& name) {
  for (DAT_COUNT i = 0; i < provider.num_provider_specific_attr; ++i) {
    const DAT_NAMED_ATTR& attribute = provider.provider_specific_attr[i];
    if (attribute.name == name) return attribute.value;
  }
  return "absent";
}

TEST(IaAttributes, TheDeviceItsTransportAndTheReasonHaveNames) {
  DAT_PROVIDER_ATTR shown, other;
  {
    verbs::DeviceAttributes device;
    device.device = "mlx5_0";
    device.transport = "InfiniBand or RoCE";
    device.reason = "it was asked for";
    ShowProvider(device, 64, &shown);
    device.device = "siw0";
    ShowProvider(device, 64, &other);
  }
  // What a program was shown is never freed.
  EXPECT_STREQ(Named(shown, "device"), "mlx5_0");
  EXPECT_STREQ(Named(shown, "transport"), "InfiniBand or RoCE");
  EXPECT_STREQ(Named(shown, "reason"), "it was asked for");
  EXPECT_STREQ(Named(other, "device"), "siw0");
}

TEST(IaAttributes, ManyQueriesHaveOneListOfNames) {
  DAT_PROVIDER_ATTR first, second;
  ShowProvider(verbs::DeviceAttributes(), 64, &first);
  ShowProvider(verbs::DeviceAttributes(), 64, &second);
  EXPECT_EQ(first.provider_specific_attr, second.provider_specific_attr);
  EXPECT_EQ(first.num_provider_specific_attr, second.num_provider_specific_attr);
}

TEST(IaAttributes, SharedReceiveQueuesAreTheDevices) {
  verbs::DeviceAttributes device;
  device.max_queue_pairs = 100;
  DAT_IA_ATTR adapter;
  DAT_PROVIDER_ATTR provider;
  ShowAdapter("none", verbs::Address(), device, &adapter);
  ShowProvider(device, 64, &provider);
  EXPECT_EQ(adapter.max_srqs, 0);
  EXPECT_EQ(adapter.max_ep_per_srq, 0);
  EXPECT_EQ(adapter.max_recv_per_srq, 0);
  EXPECT_EQ(provider.srq_supported, DAT_FALSE);
  EXPECT_EQ(provider.srq_watermarks_supported, DAT_FALSE);
  EXPECT_EQ(provider.srq_info_supported, DAT_FALSE);
  EXPECT_STREQ(Named(provider, "max_recv_iov_per_srq"), "0");
  device.max_shared_queues = 0xffffffff;
  device.max_shared_segments = 6;
  ShowAdapter("some", verbs::Address(), device, &adapter);
  ShowProvider(device, 64, &provider);
  EXPECT_EQ(adapter.max_srqs, 0x7fffffff);
  EXPECT_EQ(adapter.max_ep_per_srq, 100);
  EXPECT_EQ(provider.srq_supported, DAT_TRUE);
  EXPECT_STREQ(Named(provider, "max_recv_iov_per_srq"), "6");
  device.max_shared_segments = 252;
  ShowProvider(device, 64, &provider);
  EXPECT_STREQ(Named(provider, "max_recv_iov_per_srq"), "64");  // the face's own limit
}

#if VIADUCT_DAT_ABI == 20
TEST(IaAttributes, ZeroBasedMemoryAndScopesOfWindowsAreTheDevices) {
  verbs::DeviceAttributes device;
  DAT_IA_ATTR adapter;
  DAT_PROVIDER_ATTR provider;
  for (const bool has : {true, false}) {
    device.zero_based = device.pair_windows = has;
    ShowAdapter("some", verbs::Address(), device, &adapter);
    ShowProvider(device, 64, &provider);
    EXPECT_EQ(adapter.zb_supported, has ? DAT_TRUE : DAT_FALSE);
    EXPECT_EQ(provider.rmr_scope_supported, has ? DAT_RMR_SCOPE_ANY : DAT_RMR_SCOPE_PZ);
  }
}
#endif

// A feature that the device lacks is not listed: programs look it up there before they use it.
TEST(IaAttributes, WhatADeviceLacksIsNotShown) {
  const auto shows = [](bool atomics, bool immediate_data, const std::string& name) {
    verbs::DeviceAttributes device;
    device.atomics = atomics;
    device.immediate_data = immediate_data;
    DAT_PROVIDER_ATTR shown;
    ShowProvider(device, 64, &shown);
    const DAT_NAMED_ATTR* const first = shown.provider_specific_attr;
    return std::any_of(first, first + shown.num_provider_specific_attr,
                       [&](const DAT_NAMED_ATTR& named) { return named.name == name; });
  };
  const bool extended = kMajor == 2;
  for (const char* name : {"DAT_IB_FETCH_AND_ADD", "DAT_IB_CMP_AND_SWAP"}) {
    EXPECT_EQ(shows(true, true, name), extended) << name;
    EXPECT_EQ(shows(true, false, name), extended) << name;
    EXPECT_FALSE(shows(false, true, name)) << name;
  }
  EXPECT_EQ(shows(false, true, "DAT_IB_IMMED_DATA"), extended);
  EXPECT_FALSE(shows(true, false, "DAT_IB_IMMED_DATA"));
  EXPECT_TRUE(shows(false, false, "DAT_IB_TRANSPORT_MTU"));
}

}  // namespace
}  // namespace viaduct::dat
