// WorkQueue: the send or the receive queue of a VI, descriptors in posting order.
//
//      popped            completed              posted
//        |  Status written  |  at the device      |
//   -----+------------------+---------------------+-----> numbers, counted from 0
//
// A number is the request's id at the device and, with a bit for the queue, the cookie of its
// event. The device moves `posted` as it takes a descriptor (under its lock of the queue); the
// observer moves `completed`, Done and Wait `popped` (under the lock of the dispatcher): who posts
// never waits for who takes.
#ifndef VIADUCT_VIPL_WORK_QUEUE_H_
#define VIADUCT_VIPL_WORK_QUEUE_H_

#include <vipl.h>

#include <atomic>
#include <cstdint>

#include "absl/base/attributes.h"
#include "dat/core/error.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/object.h"
#include "verbs/base/clock.h"
#include "verbs/device.h"
#include "vipl/cq.h"
#include "vipl/descriptor_ring.h"
#include "vipl/notifies.h"

namespace viaduct::vipl {

class WorkQueue {
 public:
  enum class Side : uint8_t { kSend = 0, kReceive = 1 };  // the bit of a cookie
  using Slot = DescriptorRing::Slot;

  // `own`: the VI's dispatcher, for a queue without `cq`.
  WorkQueue(Side side, uint64_t capacity, const core::Ref<core::EventDispatcher>& own,
            const core::Ref<Cq>& cq);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  static Side SideOf(uint64_t cookie) { return static_cast<Side>(cookie & 1); }
  static uint64_t NumberOf(uint64_t cookie) { return cookie >> 1; }

  // A descriptor on its way to the device, which has it queued here in the same order. `error`: the
  // VIP_STATUS_*_ERROR that it completes with whatever the device says, or 0.
  class Posting final : public verbs::IdSource {
   public:
    Posting(WorkQueue& queue, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, uint32_t error)
        : queue_(queue), slot_{descriptor, memory, error} {}
    // The cookie. False: the queue is full, or there is no memory.
    bool TakeId(uint64_t* id) override { return queue_.Append(slot_, id); }

   private:
    WorkQueue& queue_;
    const Slot slot_;
  };

  // The observer's, for one completion after the other: the slot of the next one, and then, with
  // everything written, that it may be taken.
  Slot& NextToComplete() { return complete_cursor_.Next(); }
  void Complete() { ++completed_; }

  // Inside an EpochGuard: takes the head if it is complete. VIP_SUCCESS, VIP_NOT_DONE,
  // VIP_DESCRIPTOR_ERROR with the descriptor, or with NULL when the queue is empty.
  ABSL_ATTRIBUTE_ALWAYS_INLINE VIP_RETURN Done(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
    Head head;
    // A look at the device also lets the writes of a peer land, for a program that only polls.
    if (!dispatcher_->TakeKept([&] { return PopLocked(&head); })) {
      return empty() ? VIP_DESCRIPTOR_ERROR : VIP_NOT_DONE;
    }
    return HandOut(vi, head, descriptor);
  }
  // Outside of one: the same, but waits.
  VIP_RETURN Wait(VIP_VI_HANDLE vi, verbs::Deadline deadline, VIP_DESCRIPTOR** descriptor);
  // The VI is gone: whoever waits returns.
  void Close();

  // Its entry leaves the completion queue, under the lock of the dispatcher as it is taken there:
  // no other thread, told of a later one, takes this descriptor first. False when it was taken
  // already.
  bool Announce(uint64_t number) {
    announced_.store(number + 1, std::memory_order_release);
    return number >= popped_.load(std::memory_order_relaxed);
  }

  bool empty() const {
    return popped_.load(std::memory_order_acquire) == posted_.load(std::memory_order_acquire);
  }
  const core::Ref<Cq>& cq() const { return cq_; }
  ViNotifies& notifies() { return notifies_; }
  const core::Ref<core::EventDispatcher>& dispatcher() const { return dispatcher_; }

 private:
  bool Append(const Slot& slot, uint64_t* cookie) {
    const uint64_t number = posted_.load(std::memory_order_relaxed);
    const uint64_t in_use = number - popped_.load(std::memory_order_acquire);
    if (in_use >= capacity_) return false;
    if (!ring_.HasRoom(post_cursor_, in_use)) [[unlikely]]
      return AppendToNewBlock(slot, cookie);
    Put(slot, number, cookie);
    return true;
  }
  [[gnu::noinline]] bool AppendToNewBlock(const Slot& slot, uint64_t* cookie) {
    if (!ring_.AddBlock(post_cursor_)) return false;
    Put(slot, posted_.load(std::memory_order_relaxed), cookie);
    return true;
  }
  void Put(const Slot& slot, uint64_t number, uint64_t* cookie) {
    post_cursor_.Next() = slot;
    posted_.store(number + 1, std::memory_order_release);
    *cookie = CookieOf(number);
  }
  uint64_t CookieOf(uint64_t number) const { return number << 1 | static_cast<uint64_t>(side_); }
  struct Head {
    uint64_t number;
    VIP_DESCRIPTOR* descriptor;
    uint32_t status;
  };
  // Under the lock of the dispatcher; false: the head is not complete.
  bool PopLocked(Head* head) {
    head->number = popped_.load(std::memory_order_relaxed);
    if (head->number == completed_) return false;
    const Slot& slot = pop_cursor_.Next();
    head->descriptor = slot.descriptor;
    head->status = slot.status;
    popped_.store(head->number + 1, std::memory_order_release);
    return true;
  }
  VIP_RETURN HandOut(VIP_VI_HANDLE vi, const Head& head, VIP_DESCRIPTOR** descriptor) {
    *descriptor = head.descriptor;
    // Its entry goes with it.
    if (cq_ && head.number >= announced_.load(std::memory_order_acquire)) {
      dispatcher_->Remove(vi, CookieOf(head.number));
    }
    return (head.status & VIP_STATUS_ERROR_MASK) != 0 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
  }

  const Side side_;
  std::atomic<bool> closed_{false};
  const core::Ref<Cq> cq_;
  const core::Ref<core::EventDispatcher> dispatcher_;  // where it completes
  const uint64_t capacity_;
  DescriptorRing ring_;

  // The device's lock of the queue; `posted` also to be looked at.
  DescriptorRing::Cursor post_cursor_;
  std::atomic<uint64_t> posted_{0};

  // The lock of the dispatcher; `popped` also to be looked at.
  DescriptorRing::Cursor complete_cursor_;
  uint64_t completed_ = 0;
  DescriptorRing::Cursor pop_cursor_;
  std::atomic<uint64_t> popped_{0};

  // Entries up to here have left the completion queue. Likewise.
  std::atomic<uint64_t> announced_{0};
  ViNotifies notifies_;
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_WORK_QUEUE_H_
