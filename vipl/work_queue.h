// WorkQueue: the send or the receive queue of a VI, with its descriptors in posting order.
//
//      popped            completed              posted
//        |  Status written  |  at the device      |
//   -----+------------------+---------------------+-----> numbers, counted from 0
//
// A number, with one bit for the queue, is the request's id at the device and the cookie of its
// event. `posted` advances when the device takes a descriptor, under the device's lock of the
// queue. The observer advances `completed`, and Done and Wait advance `popped`, under the
// dispatcher's lock. So a thread that posts never waits for one that takes.
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

  // `own`: the VI's dispatcher, used if there is no `cq`.
  WorkQueue(Side side, uint64_t capacity, const core::Ref<core::EventDispatcher>& own,
            const core::Ref<Cq>& cq);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  static Side SideOf(uint64_t cookie) { return static_cast<Side>(cookie & 1); }
  static uint64_t NumberOf(uint64_t cookie) { return cookie >> 1; }

  // A descriptor on its way to the device, which calls TakeId to queue it here in the same order.
  // `error`: the VIP_STATUS_*_ERROR with which it completes unless it is flushed, or 0.
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

  // For the observer, which handles one completion after the other: NextToComplete returns the slot
  // of the next descriptor, and Complete allows the descriptor to be taken, when everything is
  // written.
  Slot& NextToComplete() { return complete_cursor_.Next(); }
  void Complete() { ++completed_; }

  // Inside an EpochGuard: takes the head if it is complete. VIP_SUCCESS, VIP_NOT_DONE,
  // VIP_DESCRIPTOR_ERROR with the descriptor, or with NULL when the queue is empty.
  ABSL_ATTRIBUTE_ALWAYS_INLINE VIP_RETURN Done(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
    Head head;
    // Polling the device also lets a peer's writes land, for a program that does nothing but poll.
    if (!dispatcher_->TakeKept([&] { return PopLocked(&head); })) {
      return empty() ? VIP_DESCRIPTOR_ERROR : VIP_NOT_DONE;
    }
    return HandOut(vi, head, descriptor);
  }
  // The same, but waits. The caller is not inside an EpochGuard.
  VIP_RETURN Wait(VIP_VI_HANDLE vi, verbs::Deadline deadline, VIP_DESCRIPTOR** descriptor);
  // The VI is gone: threads that wait return.
  void Close();

  // The entry of descriptor `number` leaves the completion queue. Called under the same hold of the
  // dispatcher's lock that removes the entry, so that no other thread, given a later entry, takes
  // this descriptor first. False: the descriptor has been taken already.
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
    // The descriptor's entry leaves the completion queue with it.
    if (cq_ && head.number >= announced_.load(std::memory_order_acquire)) {
      dispatcher_->Remove(vi, CookieOf(head.number));
    }
    return (head.status & VIP_STATUS_ERROR_MASK) != 0 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
  }

  const Side side_;
  std::atomic<bool> closed_{false};
  const core::Ref<Cq> cq_;
  const core::Ref<core::EventDispatcher> dispatcher_;  // where its descriptors complete
  const uint64_t capacity_;
  DescriptorRing ring_;

  // Guarded by the device's lock of the queue; posted_ may be read without it.
  DescriptorRing::Cursor post_cursor_;
  std::atomic<uint64_t> posted_{0};

  // Guarded by the dispatcher's lock; popped_ may be read without it.
  DescriptorRing::Cursor complete_cursor_;
  uint64_t completed_ = 0;
  DescriptorRing::Cursor pop_cursor_;
  std::atomic<uint64_t> popped_{0};

  // Entries below this number have left the completion queue. Guarded like popped_.
  std::atomic<uint64_t> announced_{0};
  ViNotifies notifies_;
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_WORK_QUEUE_H_
