// Descriptors on their way back to the program.
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "absl/base/attributes.h"
#include "compat/descriptor.h"
#include "verbs/base/epoch.h"
#include "vipl/face.h"
#include "vipl/vi.h"

namespace viaduct::vipl {
namespace {

// Writes a word of a failed descriptor. Most fail when a connection ends, and by then some programs
// have freed the memory without deregistering it, which an old adapter had kept. False: the memory
// is no longer there.
[[gnu::noinline]] bool StoreIfThere(volatile VIP_UINT32* to, uint32_t word) {
  const int error = errno;
  const iovec local = {&word, sizeof word};
  const iovec remote = {const_cast<VIP_UINT32*>(to), sizeof word};
  bool stored = process_vm_writev(gettid(), &local, 1, &remote, 1, 0) == sizeof word;
  if (!stored && errno != EFAULT) {  // the kernel refuses this call here
    __atomic_store_n(to, word, __ATOMIC_RELEASE);
    stored = true;
  }
  errno = error;
  return stored;
}

}  // namespace

// A malformed descriptor was posted as a request that fails. It gets the error that it was posted
// with, unless it was flushed before its turn.
uint32_t Vi::ErrorOf(verbs::Status status, uint32_t posted) const {
  const uint32_t error = compat::ErrorBitsOf(status, level_.load(std::memory_order_relaxed));
  return posted != 0 && error != VIP_STATUS_DESC_FLUSHED_ERROR ? posted : error;
}

// Called under the dispatcher's lock, before an event can be dequeued. A program may watch Status
// in memory, so everything else is written before it: for a receive, ImmediateData if any came, and
// Length if it succeeded; for a send, nothing.
bool Vi::OnCompletion(const verbs::Completion& completion) {
  const WorkQueue::Side side = WorkQueue::SideOf(completion.id);
  const bool receive = side == WorkQueue::Side::kReceive;
  WorkQueue& queue = QueueOf(side);
  WorkQueue::Slot& slot = queue.NextToComplete();
  uint32_t error = 0;
  if (completion.status != verbs::Status::kSuccess || slot.status != 0) [[unlikely]]
    error = ErrorOf(completion.status, slot.status);
  uint32_t status = VIP_STATUS_DONE | error | compat::OperationOf(completion.opcode);
  const bool immediate = receive && completion.has_immediate;
  if (immediate) status |= VIP_STATUS_IMMEDIATE;
  {
    // VipDeregisterMem returns only when this guard has been left.
    const verbs::EpochGuard guard;
    const Registration* region = nic_->registrations().Find(slot.memory, last_region_);
    bool stored =
        region != nullptr && region->MayHold(slot.descriptor, sizeof(VIP_CONTROL_SEGMENT));
    if (stored) {
      VIP_CONTROL_SEGMENT& control = slot.descriptor->CS;
      if (error != 0) [[unlikely]] {
        stored = (!immediate || StoreIfThere(&control.ImmediateData, completion.immediate)) &&
                 StoreIfThere(&control.Status, status);
      } else {
        if (immediate) control.ImmediateData = completion.immediate;
        if (receive) control.Length = completion.length;
        __atomic_store_n(&control.Status, status, __ATOMIC_RELEASE);
      }
    }
    if (!stored) [[unlikely]]
      Report(VIP_ERROR_COMP_PROT, VIP_RESOURCE_DESCRIPTOR, slot.descriptor);
  }
  slot.status = status;
  queue.Complete();
  if (queue.cq()) {
    queue.cq()->OnEntry();
    return true;
  }
  // A callback that waits at the other queue has armed the device, which has told of this one now.
  if (sends_.notifies().pending() || receives_.notifies().pending()) ServeNotifies();
  return false;
}

}  // namespace viaduct::vipl

namespace {

using viaduct::core::Ref;
using viaduct::vipl::DataPath;
using viaduct::vipl::FindVi;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;
using viaduct::vipl::WaitControl;
using viaduct::vipl::WorkQueue;

// Sets *descriptor to NULL unless a descriptor is handed out: programs that drain a queue check
// nothing else.
VIP_RETURN Poll(VIP_VI_HANDLE handle, WorkQueue::Side side, VIP_DESCRIPTOR** descriptor) {
  if (descriptor == nullptr) return VIP_INVALID_PARAMETER;
  *descriptor = nullptr;
  return DataPath([&]() ABSL_ATTRIBUTE_ALWAYS_INLINE -> VIP_RETURN {
    const viaduct::verbs::EpochGuard guard;
    Vi* vi = FindVi(handle);
    return vi != nullptr ? vi->QueueOf(side).Done(handle, descriptor) : VIP_INVALID_PARAMETER;
  });
}

VIP_RETURN PollThenWait(VIP_VI_HANDLE handle, WorkQueue::Side side, VIP_ULONG timeout,
                        VIP_DESCRIPTOR** descriptor) {
  const VIP_RETURN polled = Poll(handle, side, descriptor);
  if (polled != VIP_NOT_DONE) return polled;
  return WaitControl([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(handle);
    if (!vi) return VIP_INVALID_PARAMETER;
    return vi->QueueOf(side).Wait(handle, vi->nic().DeadlineAfter(timeout), descriptor);
  });
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
  return Poll(ViHandle, WorkQueue::Side::kSend, DescriptorPtr);
}

VIPL_EXPORT VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG TimeOut,
                                   VIP_DESCRIPTOR** DescriptorPtr) {
  return PollThenWait(ViHandle, WorkQueue::Side::kSend, TimeOut, DescriptorPtr);
}

VIPL_EXPORT VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
  return Poll(ViHandle, WorkQueue::Side::kReceive, DescriptorPtr);
}

VIPL_EXPORT VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG TimeOut,
                                   VIP_DESCRIPTOR** DescriptorPtr) {
  return PollThenWait(ViHandle, WorkQueue::Side::kReceive, TimeOut, DescriptorPtr);
}
