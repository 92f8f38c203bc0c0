#include "vipl/work_queue.h"

#include "compat/result.h"

namespace viaduct::vipl {

WorkQueue::WorkQueue(Side side, uint64_t capacity, const core::Ref<core::EventDispatcher>& own,
                     const core::Ref<Cq>& cq)
    : side_(side),
      cq_(cq),
      dispatcher_(cq ? cq->dispatcher() : own),
      capacity_(capacity),
      post_cursor_(ring_.begin()),
      complete_cursor_(ring_.begin()),
      pop_cursor_(ring_.begin()) {}

VIP_RETURN WorkQueue::Wait(VIP_VI_HANDLE vi, verbs::Deadline deadline,
                           VIP_DESCRIPTOR** descriptor) {
  Head head;
  bool popped = false;
  const core::Error error = dispatcher_->WaitUntil(deadline, [&] {
    if (closed_.load(std::memory_order_acquire)) return true;
    popped = PopLocked(&head);
    return popped || empty();
  });
  if (popped) return HandOut(vi, head, descriptor);
  if (!error.ok()) return compat::ResultOf(error);
  return closed_.load(std::memory_order_acquire) ? VIP_INVALID_PARAMETER : VIP_DESCRIPTOR_ERROR;
}

void WorkQueue::Close() {
  closed_.store(true, std::memory_order_release);
  dispatcher_->Wake();
}

}  // namespace viaduct::vipl
