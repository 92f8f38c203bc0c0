// Where the completion queues of one CompletionCore say that there is something.
//
// The first few of a process have a channel of the device for themselves, and in that a thread that
// waits sleeps itself: no other thread has to run between the device and it. While none does, the
// control thread watches it. The others share the device's one, which the control thread alone
// reads.
//
//   watched --Enter--> slept in --Leave--> nobody's --Watch--> watched
//
// It is nobody's while threads wait now and then, so that their sleeps cost no epoll_ctl; whoever
// leaves sees to it that Watch comes.
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
  // `handler`: of the queues that are made with it.
  CompletionChannel(Device& device, CqHandler& handler) : device_(device), handler_(handler) {}
  ~CompletionChannel();  // on the control thread, behind the queues
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  // Before the first queue is made: becomes one of its own where there is room for that.
  void Open();
  ibv_comp_channel* handle() const { return own_ != nullptr ? own_ : device_.completions(); }

  // Any thread: it is going to sleep here, when it has armed the queues and looked once more.
  // False: another one is, or the channel is not its own. What a thread has left behind that was
  // interrupted asleep, and never came back, it finds as its own.
  bool Enter();
  // Until a queue tells of something, which is taken, or Rouse: kWoken, also for no reason.
  // Else as FutexWait.
  FutexResult Sleep(Deadline deadline);
  void Leave();
  bool occupied() const { return sleeper_.load(std::memory_order_seq_cst) != kNobody; }

  // Any thread: who sleeps here looks again; one who has entered and not slept yet does not sleep.
  void Rouse();

  // Control thread: it hears of what the queues tell from now on, unless somebody sleeps here.
  void Watch();

 private:
  static constexpr pthread_t kNobody = 0;

  bool MakeOwn();
  static void Close(ibv_comp_channel* channel, EventFd rouse);
  // Takes what a queue has told, if it has.
  void TakeEvent();
  void OnEvents(uint32_t events);
  bool usable() const;

  Device& device_;
  CqHandler& handler_;
  ibv_comp_channel* own_ = nullptr;
  EventFd rouse_;
  // Its own, and no descriptor of it was found closed (the device was taken out).
  std::atomic<bool> usable_{false};
  std::atomic<pthread_t> sleeper_{kNobody};
  Mutex mutex_;  // of those who come and go
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_COMPLETION_CHANNEL_H_
