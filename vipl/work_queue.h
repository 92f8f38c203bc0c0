// WorkQueue: the send or the receive queue of a VI, descriptors in posting order.
//
//      popped            completed              posted
//        |  Status written  |  at the device      |
//   -----+------------------+---------------------+-----> numbers, counted from 0
//
// A number is the request's id at the device and, with a bit for the queue, the cookie of its
// event. Post moves `posted` (under the post lock), the observer `completed` (under the lock of the
// dispatcher), Done and Wait `popped` (under the done lock): the three never wait for each other
// but for a place of the ring.
#ifndef VIADUCT_VIPL_WORK_QUEUE_H_
#define VIADUCT_VIPL_WORK_QUEUE_H_

#include <vipl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "dat/core/error.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/object.h"
#include "verbs/base/clock.h"
#include "verbs/base/executor.h"
#include "verbs/base/lock.h"
#include "vipl/cq.h"

namespace viaduct::vipl {

class WorkQueue {
 public:
  enum class Side : uint8_t { kSend, kReceive };
  // Exactly one of `own` (an eager dispatcher that nobody else feeds) and `cq` is given.
  WorkQueue(Side side, uint32_t capacity, core::Ref<core::EventDispatcher> own, core::Ref<Cq> cq);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  static Side SideOf(uint64_t cookie) { return cookie & 1 ? Side::kReceive : Side::kSend; }
  static uint64_t NumberOf(uint64_t cookie) { return cookie >> 1; }

  // Queues `descriptor` and calls `post` with its cookie. `error`: the VIP_STATUS_*_ERROR that it
  // completes with whatever the device says, or 0. kQueueFull, or what `post` answered: then it
  // is not queued.
  template <typename PostToDevice>
  core::Error Post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, uint32_t error,
                   const PostToDevice& post) {
    const verbs::SpinLockHolder hold(&post_lock_);
    const uint64_t number = posted_.load(std::memory_order_relaxed);
    if (number - popped_.load(std::memory_order_acquire) > mask_) return core::Code::kQueueFull;
    slots_[number & mask_] = {descriptor, memory, error};
    // First, since the completion may be there before `post` returns.
    posted_.store(number + 1, std::memory_order_release);
    const core::Error result = post(number << 1 | (side_ == Side::kReceive ? 1 : 0));
    if (!result.ok()) posted_.store(number, std::memory_order_release);
    return result;
  }

  struct Slot {
    VIP_DESCRIPTOR* descriptor;
    VIP_MEM_HANDLE memory;
    uint32_t status;  // at first the error it was posted with, then what it completed with
  };
  // For the observer, which handles completions one at a time and in order.
  Slot& SlotOf(uint64_t cookie) { return slots_[NumberOf(cookie) & mask_]; }
  void Complete(uint64_t cookie);

  // Inside an EpochGuard: takes the head if it is complete. VIP_SUCCESS, VIP_NOT_DONE,
  // VIP_DESCRIPTOR_ERROR with the descriptor, or with NULL when the queue is empty.
  VIP_RETURN Done(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor);
  // Outside of one: the same, but waits.
  VIP_RETURN Wait(VIP_VI_HANDLE vi, verbs::Executor& executor, verbs::Deadline deadline,
                  VIP_DESCRIPTOR** descriptor);
  // The VI is gone: whoever waits returns.
  void Close();

  // Of the entry in the completion queue: false when the descriptor was taken already.
  bool Announce(uint64_t number);

  bool empty() const {
    return popped_.load(std::memory_order_acquire) == posted_.load(std::memory_order_acquire);
  }
  const core::Ref<Cq>& cq() const { return cq_; }
  const core::Ref<core::EventDispatcher>& dispatcher() const {
    return cq_ ? cq_->dispatcher_ref() : own_;
  }

 private:
  VIP_RETURN Pop(VIP_DESCRIPTOR** descriptor, uint64_t* number);
  VIP_RETURN WaitBesideCq(VIP_VI_HANDLE vi, verbs::Executor& executor, verbs::Deadline deadline,
                          VIP_DESCRIPTOR** descriptor);
  void WakeWaiters();

  const Side side_;
  const core::Ref<core::EventDispatcher> own_;
  const core::Ref<Cq> cq_;
  const uint64_t mask_;
  Slot* const slots_;  // untouched until used

  verbs::SpinLock post_lock_;
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint64_t> completed_{0};
  verbs::SpinLock done_lock_;
  std::atomic<uint64_t> popped_{0};
  std::atomic<uint64_t> announced_{0};  // entries up to here have left the completion queue

  // Threads in VipSendWait or VipRecvWait of a queue that has a completion queue: its dispatcher
  // hands entries to those that ask for entries, so these sleep beside it.
  std::atomic<int> waiters_{0};
  std::atomic<bool> closed_{false};
  verbs::Mutex parkers_lock_;
  std::vector<verbs::Parker*> parkers_ ABSL_GUARDED_BY(parkers_lock_);
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_WORK_QUEUE_H_
