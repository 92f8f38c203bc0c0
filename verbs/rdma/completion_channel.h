// The channel on which the completion queues of one CompletionCore report completions.
//
// The first few CompletionCores of a process each have a channel of their own. A waiting thread
// sleeps in it directly, so that no other thread has to run between the device and the waiter.
// While nobody sleeps there, the control thread watches the channel. All other CompletionCores
// share the device's channel, which only the control thread reads.
//
//   watched --Enter--> slept in --Leave--> nobody's --Watch--> watched
//
// The channel is nobody's while threads wait now and then, so that their sleeps cost no epoll_ctl.
// A thread that leaves makes sure that Watch is called in time.
#ifndef VIADUCT_VERBS_RDMA_COMPLETION_CHANNEL_H_
#define VIADUCT_VERBS_RDMA_COMPLETION_CHANNEL_H_

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_fd.h"
#include "verbs/base/futex.h"
#include "verbs/base/lock.h"
#include "verbs/rdma/device.h"

namespace viaduct::verbs::rdma {

class CompletionChannel {
 public:
  // `handler` is that of the completion queues made with this channel.
  CompletionChannel(Device& device, CqHandler& handler) : device_(device), handler_(handler) {}
  ~CompletionChannel();  // on the control thread, after its queues were destroyed
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  // Called before the first queue is made. Opens a channel of its own if there is room for one.
  // Throws std::bad_alloc, and may then be called again.
  void Open();
  ibv_comp_channel* handle() const { return own_ != nullptr ? own_ : device_.completions(); }

  // Any thread, when it has armed the queues and polled once more: it is about to sleep here.
  // False: another thread sleeps here, or there is no channel of its own to sleep in. A thread that
  // was interrupted in its sleep and never came back to Leave may enter again.
  bool Enter();
  // Sleeps until a queue reports completions, whose event is consumed, or Rouse is called. Returns
  // kWoken then, and sometimes for no reason; otherwise as FutexWait.
  FutexResult Sleep(Deadline deadline);
  void Leave();
  bool occupied() const { return sleeper_.load(std::memory_order_seq_cst) != kNobody; }

  // Any thread. Wakes the thread that sleeps here, or keeps one that has entered from going to
  // sleep.
  void Rouse();

  // Control thread: watches the channel from now on, unless somebody sleeps in it.
  void Watch();

 private:
  static constexpr pthread_t kNobody = 0;

  bool MakeOwn();
  static void Close(ibv_comp_channel* channel, EventFd rouse);
  // Consumes one event of a queue, if there is one.
  void TakeEvent();
  void OnEvents(uint32_t events);
  bool usable() const;

  Device& device_;
  CqHandler& handler_;
  ibv_comp_channel* own_ = nullptr;
  EventFd rouse_;
  // It has a channel of its own, and no descriptor was found closed (the device was removed).
  std::atomic<bool> usable_{false};
  std::atomic<pthread_t> sleeper_{kNobody};
  Mutex mutex_;  // held by those who enter, leave or watch
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_COMPLETION_CHANNEL_H_
