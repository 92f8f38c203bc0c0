#include "dat/api/ia_attributes.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>

#include "dat/api/limits.h"
#include "dat/api/named_attributes.h"
#include "verbs/base/version.h"

namespace viaduct::dat {
namespace {

constexpr char kVendor[] = "Viaduct";

struct ProjectVersion {
  unsigned major = 0;
  unsigned minor = 0;
};
ProjectVersion LibraryVersion() {
  ProjectVersion version;
  sscanf(VIADUCT_VERSION, "%u.%u", &version.major, &version.minor);
  return version;
}

// Stores `value`, limited to what the member's type can hold.
template <typename T>
void Set(T* member, uint64_t value) {
  *member = static_cast<T>(std::min<uint64_t>(value, std::numeric_limits<T>::max()));
}

void SetName(const std::string& name, char (&member)[DAT_NAME_MAX_LENGTH]) {
  snprintf(member, sizeof member, "%s", name.c_str());
}

// For objects without a limit of their own: memory is the limit.
constexpr DAT_COUNT kUnlimited = std::numeric_limits<DAT_COUNT>::max();

}  // namespace

void ShowAdapter(const std::string& name, const verbs::Address& address,
                 const verbs::DeviceAttributes& device, DAT_IA_ATTR* attributes) {
  *attributes = {};
  const ProjectVersion version = LibraryVersion();
  const uint32_t segments = std::min<uint32_t>(device.max_segments, kMaxSegments);
  SetName(name, attributes->adapter_name);
  SetName(kVendor, attributes->vendor_name);
  attributes->hardware_version_major = version.major;
  attributes->hardware_version_minor = version.minor;
  attributes->firmware_version_major = version.major;
  attributes->firmware_version_minor = version.minor;
  attributes->ia_address_ptr = const_cast<sockaddr*>(address.data());
  Set(&attributes->max_eps, device.max_queue_pairs);
  Set(&attributes->max_dto_per_ep, device.max_requests_per_queue);
  Set(&attributes->max_rdma_read_per_ep_in, device.max_reads_in);
  Set(&attributes->max_rdma_read_per_ep_out, device.max_reads_out);
  attributes->max_evds = kUnlimited;
  attributes->max_evd_qlen = kMaxEvdLength;
  Set(&attributes->max_iov_segments_per_dto, segments);
  Set(&attributes->max_lmrs, device.max_regions);
  Set(&attributes->max_lmr_block_size, device.max_region_bytes);
  attributes->max_lmr_virtual_address = std::numeric_limits<DAT_VADDR>::max();
  attributes->max_pzs = kUnlimited;
  Set(&attributes->max_message_size, device.max_message_bytes);
  Set(&attributes->max_rdma_size, device.max_message_bytes);
  Set(&attributes->max_rmrs, device.max_regions);
  Set(&attributes->max_srqs, device.max_shared_queues);
  Set(&attributes->max_ep_per_srq, device.max_shared_queues == 0 ? 0 : device.max_queue_pairs);
  Set(&attributes->max_recv_per_srq, device.max_shared_receives);
  attributes->max_rmr_target_address = std::numeric_limits<DAT_VADDR>::max();
  Set(&attributes->max_iov_segments_per_rdma_read, segments);
  Set(&attributes->max_iov_segments_per_rdma_write, segments);
  Set(&attributes->max_rdma_read_in, uint64_t{device.max_reads_in} * device.max_queue_pairs);
  Set(&attributes->max_rdma_read_out, uint64_t{device.max_reads_out} * device.max_queue_pairs);
  attributes->max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
  attributes->max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
  SetVersionFields(device, attributes);
}

void ShowProvider(const verbs::DeviceAttributes& device, uint32_t max_private_data,
                  DAT_PROVIDER_ATTR* attributes) {
  *attributes = {};
  const ProjectVersion version = LibraryVersion();
  SetName(kVendor, attributes->provider_name);
  attributes->provider_version_major = version.major;
  attributes->provider_version_minor = version.minor;
  attributes->dapl_version_major = kMajor;
  attributes->dapl_version_minor = kMinor;
  attributes->lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(
      DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);  // and VIRTUAL, which is 0
  attributes->iov_ownership_on_return = DAT_IOV_CONSUMER;
  attributes->dat_qos_supported = DAT_QOS_BEST_EFFORT;
  attributes->completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(
      DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
      DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
      DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  attributes->is_thread_safe = DAT_TRUE;
  Set(&attributes->max_private_data_size, max_private_data);
  attributes->supports_multipath = DAT_FALSE;
  attributes->ep_creator = DAT_PSP_CREATES_EP_IFASKED;
  attributes->pz_support = DAT_PZ_UNIQUE;
  attributes->optimal_buffer_alignment = 64;  // a cache line; divides DAT_OPTIMAL_ALIGNMENT
  for (auto& row : attributes->evd_stream_merging_supported) {
    std::fill(std::begin(row), std::end(row), DAT_TRUE);
  }
  const DAT_BOOLEAN shared = device.max_shared_queues != 0 ? DAT_TRUE : DAT_FALSE;
  attributes->srq_supported = shared;
  attributes->srq_watermarks_supported = shared;
  attributes->srq_info_supported = shared;
  attributes->srq_ep_pz_difference_supported = DAT_FALSE;
  attributes->ep_recv_info_supported = DAT_TRUE;
  attributes->lmr_sync_req = DAT_FALSE;
  attributes->dto_async_return_guaranteed = DAT_FALSE;
  attributes->rdma_write_for_rdma_read_req = DAT_FALSE;
  const absl::Span<const DAT_NAMED_ATTR> named = NamedAttributesOf(device);
  Set(&attributes->num_provider_specific_attr, named.size());
  attributes->provider_specific_attr = const_cast<DAT_NAMED_ATTR*>(named.data());
  SetVersionFields(device, attributes);
}

}  // namespace viaduct::dat
