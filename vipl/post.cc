// Descriptors on their way to the device.
#include "absl/base/attributes.h"
#include "compat/attributes.h"
#include "compat/descriptor.h"
#include "compat/result.h"
#include "verbs/base/epoch.h"
#include "vipl/face.h"
#include "vipl/vi.h"

namespace viaduct::vipl {
namespace {

// A malformed descriptor is posted as a request that fails like this, so that it completes in its
// turn like any other.
verbs::Status FailureOf(uint32_t error) {
  return error == VIP_STATUS_LENGTH_ERROR ? verbs::Status::kLocalLength
                                          : verbs::Status::kLocalProtection;
}

void ClearStatus(VIP_DESCRIPTOR* descriptor) {
  __atomic_store_n(&descriptor->CS.Status, 0u, __ATOMIC_RELAXED);
}

}  // namespace

// True if the descriptor is aligned and lies entirely in the pages of the region whose handle came
// with it. No part of a descriptor is read before that is known. `segments`: its segment count,
// which must not be read from the descriptor again.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Vi::DescriptorIsValid(const VIP_DESCRIPTOR* descriptor,
                                                               VIP_MEM_HANDLE memory,
                                                               uint32_t* segments) const {
  if (reinterpret_cast<uintptr_t>(descriptor) % VIP_DESCRIPTOR_ALIGNMENT != 0) return false;
  const Registration* region = nic_->registrations().Find(memory, last_region_);
  if (region == nullptr ||
      !TagsMatch(region->tag.load(std::memory_order_relaxed),
                 tag_.load(std::memory_order_relaxed)) ||
      !region->MayHold(descriptor, sizeof(VIP_CONTROL_SEGMENT))) {
    return false;
  }
  *segments = compat::SegmentCountOf(*descriptor);
  return region->MayHold(descriptor, compat::DescriptorBytes(*segments));
}

// False: the descriptor is invalid, which has been reported. A fault in a descriptor is not a
// result of the call ([VIGM] viperrorcallback).
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Vi::Admit(VIP_DESCRIPTOR* descriptor,
                                                   VIP_MEM_HANDLE memory, uint32_t* segments) {
  if (DescriptorIsValid(descriptor, memory, segments)) [[likely]]
    return true;
  Report(VIP_ERROR_POST_DESC, VIP_RESOURCE_DESCRIPTOR, descriptor);
  return false;
}

// Too many descriptors are not a result of the call either.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline VIP_RETURN Vi::AnswerPost(core::Error error,
                                                              VIP_DESCRIPTOR* descriptor) {
  if (error.ok()) [[likely]]
    return VIP_SUCCESS;
  return AnswerRefusal(error, descriptor);
}

VIP_RETURN Vi::AnswerRefusal(core::Error error, VIP_DESCRIPTOR* descriptor) {
  if (error.code != core::Code::kQueueFull && error.code != core::Code::kInsufficientResources) {
    return compat::ResultOf(error);
  }
  Report(VIP_ERROR_VI_OVERRUN, VIP_RESOURCE_VI, descriptor);
  return VIP_SUCCESS;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline VIP_RETURN Vi::PostSend(VIP_DESCRIPTOR* descriptor,
                                                            VIP_MEM_HANDLE memory) {
  uint32_t segments;
  if (!Admit(descriptor, memory, &segments)) [[unlikely]]
    return VIP_SUCCESS;
  const VIP_RELIABILITY_LEVEL level = level_.load(std::memory_order_relaxed);
  compat::DescriptorLimits limits;
  limits.max_segments = static_cast<uint32_t>(nic_->attributes().MaxSegmentsPerDesc);
  limits.max_transfer_size = max_transfer_size_.load(std::memory_order_relaxed);
  limits.request_flags = compat::RequestFlagsOf(level);
  limits.rdma_read = (level & nic_->attributes().RDMAReadSupport) != 0;
  limits.all_immediate = all_immediate_;
  verbs::SendRequest request;
  const uint32_t error = compat::ReadSend(*descriptor, segments, limits, &request);
  if (error != 0) [[unlikely]] {
    const verbs::Opcode operation = request.opcode;
    request = verbs::SendRequest();
    request.opcode = operation;
    request.verdict = FailureOf(error);
  }
  ClearStatus(descriptor);
  WorkQueue::Posting posting(sends_, descriptor, memory, error);
  request.ids = &posting;
  return AnswerPost(endpoint_->PostSendAnyState(request), descriptor);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline VIP_RETURN Vi::PostReceive(VIP_DESCRIPTOR* descriptor,
                                                               VIP_MEM_HANDLE memory) {
  uint32_t segments;
  if (!Admit(descriptor, memory, &segments)) [[unlikely]]
    return VIP_SUCCESS;
  compat::DescriptorLimits limits;
  limits.max_segments = static_cast<uint32_t>(nic_->attributes().MaxSegmentsPerDesc);
  verbs::ReceiveRequest request;
  const uint32_t error = compat::ReadReceive(*descriptor, segments, limits, &request);
  if (error != 0) [[unlikely]] {
    request = verbs::ReceiveRequest();
    request.verdict = FailureOf(error);
  }
  ClearStatus(descriptor);
  WorkQueue::Posting posting(receives_, descriptor, memory, error);
  request.ids = &posting;
  return AnswerPost(endpoint_->PostReceive(request), descriptor);
}

}  // namespace viaduct::vipl

using viaduct::vipl::DataPath;
using viaduct::vipl::FindVi;
using viaduct::vipl::Vi;

VIPL_EXPORT VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                                   VIP_MEM_HANDLE MemoryHandle) {
  return DataPath([&]() -> VIP_RETURN {
    const viaduct::verbs::EpochGuard guard;
    Vi* vi = FindVi(ViHandle);
    if (vi == nullptr || DescriptorPtr == nullptr) return VIP_INVALID_PARAMETER;
    return vi->PostSend(DescriptorPtr, MemoryHandle);
  });
}

VIPL_EXPORT VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                                   VIP_MEM_HANDLE MemoryHandle) {
  return DataPath([&]() -> VIP_RETURN {
    const viaduct::verbs::EpochGuard guard;
    Vi* vi = FindVi(ViHandle);
    if (vi == nullptr || DescriptorPtr == nullptr) return VIP_INVALID_PARAMETER;
    return vi->PostReceive(DescriptorPtr, MemoryHandle);
  });
}
