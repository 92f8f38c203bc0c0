#include "vipl/work_queue.h"

#include "compat/result.h"
#include "verbs/base/epoch.h"

namespace viaduct::vipl {

WorkQueue::WorkQueue(Side side, uint64_t capacity, const core::Ref<core::EventDispatcher>& own,
                     const core::Ref<Cq>& cq)
    : side_(side),
      cq_(cq),
      dispatcher_(cq ? cq->dispatcher_ref() : own),
      capacity_(capacity),
      post_cursor_(ring_.begin()),
      complete_cursor_(ring_.begin()),
      pop_cursor_(ring_.begin()) {}

VIP_RETURN WorkQueue::Pop(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
  uint64_t head;
  VIP_RETURN result;
  {
    const verbs::SpinLockHolder hold(&pop_lock_);
    head = popped_.load(std::memory_order_relaxed);
    if (head == completed_.load(std::memory_order_acquire)) {
      return head == posted_.load(std::memory_order_acquire) ? VIP_DESCRIPTOR_ERROR : VIP_NOT_DONE;
    }
    const Slot& slot = pop_cursor_.Next();
    *descriptor = slot.descriptor;
    result = (slot.status & VIP_STATUS_ERROR_MASK) != 0 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
    popped_.store(head + 1, std::memory_order_release);
  }
  // Its entry goes with it.
  if (cq_ && head >= announced_.load(std::memory_order_acquire)) {
    dispatcher_->Remove(vi, CookieOf(head));
  }
  return result;
}

VIP_RETURN WorkQueue::Wait(VIP_VI_HANDLE vi, verbs::Deadline deadline,
                           VIP_DESCRIPTOR** descriptor) {
  VIP_RETURN result = VIP_INVALID_PARAMETER;
  const core::Error error = dispatcher_->WaitUntil(deadline, [&] {
    if (closed_.load(std::memory_order_acquire)) return true;
    result = Pop(vi, descriptor);
    return result != VIP_NOT_DONE;
  });
  return error.ok() ? result : compat::ResultOf(error);
}

void WorkQueue::Close() {
  closed_.store(true, std::memory_order_release);
  dispatcher_->Wake();
}

bool WorkQueue::Announce(uint64_t number) {
  uint64_t seen = announced_.load(std::memory_order_relaxed);
  while (seen <= number &&
         !announced_.compare_exchange_weak(seen, number + 1, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  return number >= popped_.load(std::memory_order_acquire);
}

}  // namespace viaduct::vipl
