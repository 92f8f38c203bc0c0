#include "vipl/work_queue.h"

#include <algorithm>
#include <new>
#include <utility>

#include "compat/result.h"
#include "verbs/base/asymmetric_fence.h"
#include "verbs/base/block.h"
#include "verbs/base/epoch.h"

namespace viaduct::vipl {
namespace {

uint64_t PowerOfTwo(uint64_t at_least) {
  uint64_t power = 1;
  while (power < at_least) power *= 2;
  return power;
}

}  // namespace

WorkQueue::WorkQueue(Side side, uint32_t capacity, core::Ref<core::EventDispatcher> own,
                     core::Ref<Cq> cq)
    : side_(side),
      own_(std::move(own)),
      cq_(std::move(cq)),
      mask_(PowerOfTwo(capacity) - 1),
      slots_(static_cast<Slot*>(verbs::AllocateBlock((mask_ + 1) * sizeof(Slot)))) {
  if (slots_ == nullptr) throw std::bad_alloc();
}

WorkQueue::~WorkQueue() { verbs::FreeBlock(slots_, (mask_ + 1) * sizeof(Slot)); }

void WorkQueue::Complete(uint64_t cookie) {
  completed_.store(NumberOf(cookie) + 1, std::memory_order_release);
  if (!cq_) return;
  verbs::LightFence();  // with the HeavyFence of a waiter
  if (waiters_.load(std::memory_order_relaxed) != 0) WakeWaiters();
}

VIP_RETURN WorkQueue::Pop(VIP_DESCRIPTOR** descriptor, uint64_t* number) {
  const verbs::SpinLockHolder hold(&done_lock_);
  const uint64_t head = popped_.load(std::memory_order_relaxed);
  if (head == completed_.load(std::memory_order_acquire)) {
    return head == posted_.load(std::memory_order_acquire) ? VIP_DESCRIPTOR_ERROR : VIP_NOT_DONE;
  }
  const Slot& slot = slots_[head & mask_];
  *descriptor = slot.descriptor;
  *number = head;
  const bool failed = (slot.status & VIP_STATUS_ERROR_MASK) != 0;
  popped_.store(head + 1, std::memory_order_release);
  return failed ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

VIP_RETURN WorkQueue::Done(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
  uint64_t number = 0;
  if (!cq_) {
    // One event for each completion: who takes an event may take a descriptor.
    core::Event event;
    if (empty()) {
      own_->Harvest();  // a program that only polls still wants writes of its peer to land
      return VIP_DESCRIPTOR_ERROR;
    }
    const core::Error error = own_->Dequeue(&event);
    return error.ok() ? Pop(descriptor, &number) : compat::ResultOf(error);
  }
  VIP_RETURN result = Pop(descriptor, &number);
  if (result == VIP_NOT_DONE) {
    cq_->dispatcher().Harvest();
    result = Pop(descriptor, &number);
  }
  if (*descriptor != nullptr && number >= announced_.load(std::memory_order_acquire)) {
    cq_->dispatcher().Remove(vi, number << 1 | (side_ == Side::kReceive ? 1 : 0));
  }
  return result;
}

VIP_RETURN WorkQueue::Wait(VIP_VI_HANDLE vi, verbs::Executor& executor, verbs::Deadline deadline,
                           VIP_DESCRIPTOR** descriptor) {
  if (cq_) return WaitBesideCq(vi, executor, deadline, descriptor);
  if (empty()) return VIP_DESCRIPTOR_ERROR;
  core::Event event;
  const core::Error error = own_->Wait(deadline, {}, &event, nullptr);
  uint64_t number;
  return error.ok() ? Pop(descriptor, &number) : compat::ResultOf(error);
}

VIP_RETURN WorkQueue::WaitBesideCq(VIP_VI_HANDLE vi, verbs::Executor& executor,
                                   verbs::Deadline deadline, VIP_DESCRIPTOR** descriptor) {
  const std::unique_ptr<verbs::Parker> parker = executor.NewParker();
  {
    const verbs::MutexLock hold(&parkers_lock_);
    parkers_.push_back(parker.get());
    waiters_.fetch_add(1);
  }
  verbs::HeavyFence();
  VIP_RETURN result;
  while (true) {
    {
      const verbs::EpochGuard guard;
      result = Done(vi, descriptor);
    }
    if (result != VIP_NOT_DONE) break;
    if (closed_.load(std::memory_order_acquire)) {
      result = VIP_INVALID_PARAMETER;
      break;
    }
    if (deadline.Passed(executor)) {
      result = VIP_TIMEOUT;
      break;
    }
    parker->Park(deadline);
  }
  const verbs::MutexLock hold(&parkers_lock_);
  parkers_.erase(std::find(parkers_.begin(), parkers_.end(), parker.get()));
  waiters_.fetch_sub(1);
  return result;
}

void WorkQueue::WakeWaiters() {
  const verbs::MutexLock hold(&parkers_lock_);
  for (verbs::Parker* parker : parkers_) parker->Unpark();
}

void WorkQueue::Close() {
  closed_.store(true, std::memory_order_release);
  WakeWaiters();
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
