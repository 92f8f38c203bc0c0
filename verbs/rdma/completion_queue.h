// A completion queue without a limit, made of the device's completion queues, whose size is fixed.
//
// CompletionCore takes the completions from the hardware. It lives until the last connection that
// completes there is buried, even if the CompletionQueue was destroyed before.
//
// Harvesting moves completions from the device into the records of the work queues; reaping takes
// them out for the program. Both happen under `lock`. The control thread harvests when the device
// reports an event, so that errors, held receives and drains go on without calls of the program.
// While the program polls, nobody arms the device again; instead a tick checks whether the program
// still polls. It comes every millisecond if there is a sink, which must hear of completions soon,
// and otherwise every sixteen, so that a program that only polls is interrupted less often.
#ifndef VIADUCT_VERBS_RDMA_COMPLETION_QUEUE_H_
#define VIADUCT_VERBS_RDMA_COMPLETION_QUEUE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"
#include "verbs/base/errand.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/lock.h"
#include "verbs/base/pass_lock.h"
#include "verbs/device.h"
#include "verbs/rdma/completion_channel.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/work_id.h"
#include "verbs/rdma/work_queue.h"

namespace viaduct::verbs::rdma {

class SharedReceiveCore;

class CompletionCore final : public CqHandler, public std::enable_shared_from_this<CompletionCore> {
 public:
  static std::shared_ptr<CompletionCore> Make(Device& device, Nanos spin);
  CompletionCore(Device& device, Nanos spin);
  ~CompletionCore();  // on the control thread

  // Reserves room for `entries` completions in one of the device's queues and returns the number of
  // that queue, or -1 if the device has none left (a line is logged).
  int Reserve(uint32_t entries);
  void Release(int number, uint32_t entries);
  // The same for the receives of a shared queue, which need room here only once, however many pairs
  // take them.
  int ReserveShared(const SharedReceiveCore& receives);
  void ReleaseShared(const SharedReceiveCore& receives);
  ibv_cq* handle(int number) const { return queues_[number].handle; }

  PassLock lock;
  // Takes what the device has completed; true if there was anything.
  bool Harvest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  // Adds `queue` to the list of those that have completions to reap. Send queues stand before all
  // receive queues: a message that was received may answer one that was sent.
  void List(Direction direction, WorkQueue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  void Unlist(WorkQueue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock) { return first_ != nullptr; }
  uint64_t listed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock) { return listed_; }
  // Removes the oldest requests of `queue` as far as nobody gets to see their completions.
  void SkipUnseen(WorkQueue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  int Reap(Completion* out, int n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);

  // Called after completions were listed that did not come from the device: wakes the waiters and
  // has the sink called. The caller must not hold `lock`.
  void Notify();
  // Makes the control thread take what the device completes from now on, although somebody has
  // polled a moment ago. The caller must not hold `lock`.
  void TendSoon();

  // The methods of CompletionQueue.
  int PollLocked(Completion* out, int n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  WaitResult Wait(Deadline deadline, uint32_t wakes);
  uint32_t wakes() const { return wakes_.load(std::memory_order_acquire); }
  void Wake();
  void Arm(CompletionQueue& queue, CompletionSink& sink);
  void SetSink(CompletionQueue* queue, CompletionSink* sink);

  void OnCqEvent() override;

 private:
  static constexpr int kMaxQueues = 24;
  struct Queue {
    ibv_cq* handle = nullptr;
    uint32_t size = 0;
    uint32_t reserved = 0;
    bool failed = false;  // under `lock`: polling it failed, and that was logged
  };
  struct SharedReservation {
    int number = -1;
    int pairs = 0;
  };

  int ReserveLocked(uint32_t entries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(reserve_mutex_);
  // Passes a completion to its connection or other owner, or straight to `out` as in HarvestTo.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Dispatch(const ibv_wc& completion, Completion* out, int n,
                                             int* taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  // As Harvest, but up to `n` completions go straight to `out`, as long as they need not wait
  // behind one that is listed; `*taken` says how many.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool HarvestTo(Completion* out, int n, int* taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  void NoteFailedPoll(Queue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  // What the device had: completions for the program; only others, such as those of a connection
  // that is gone; or nothing.
  enum class Found : uint8_t { kNews, kOthers, kNothing };
  Found Look();
  void RequestEvents();
  // Sleeps until there may be something to poll. The caller has counted itself as a waiter.
  FutexResult Sleep(uint32_t news, Deadline deadline);
  void WakeSleepers();
  void WakeWaiters();
  // Control thread: harvests, calls the sink, arms the device.
  void Tend();
  void TendArmed();
  void Delete() { delete this; }
  // Called after somebody has polled or waited: from now on ticks check whether anybody still does.
  void StartTicks();
  NextTick Tick();

  Device& device_;
  const Nanos spin_;
  std::unique_ptr<Ticker> ticker_;
  Mutex reserve_mutex_;
  Queue queues_[kMaxQueues];
  std::map<const SharedReceiveCore*, SharedReservation> shared_ ABSL_GUARDED_BY(reserve_mutex_);
  std::atomic<int> queue_count_{0};
  WorkQueue* first_ ABSL_GUARDED_BY(lock) = nullptr;
  WorkQueue* last_ ABSL_GUARDED_BY(lock) = nullptr;
  WorkQueue* last_sends_ ABSL_GUARDED_BY(lock) = nullptr;  // the last send queue in that list
  uint64_t listed_ ABSL_GUARDED_BY(lock) = 0;              // counts the calls of List
  std::atomic<uint64_t> polls_{0};
  std::atomic<uint32_t> wakes_{0};
  std::atomic<uint32_t> news_{0};  // the futex that waiters sleep on
  std::atomic<uint32_t> waiters_{0};
  CompletionChannel channel_;
  // Set by TendArmed: the sink is called although somebody polls. Written on the control thread.
  std::atomic<bool> always_{false};
  // Control thread.
  uint64_t told_ = 0;
  uint64_t polls_seen_ = 0;
  Errand<&CompletionCore::Tend, std::shared_ptr<CompletionCore>> tend_errand_;
  Errand<&CompletionCore::TendArmed, std::shared_ptr<CompletionCore>> arm_errand_;
  Errand<&CompletionCore::Delete, CompletionCore*> deletion_errand_;
  Mutex sink_mutex_;
  CompletionQueue* owner_ ABSL_GUARDED_BY(sink_mutex_) = nullptr;
  CompletionSink* sink_ ABSL_GUARDED_BY(sink_mutex_) = nullptr;
  std::atomic<bool> tells_{false};  // there is a sink; written under sink_mutex_
};

class RdmaCompletionQueue final : public CompletionQueue {
 public:
  RdmaCompletionQueue(Device& device, std::shared_ptr<CompletionCore> core, CompletionSink* sink);
  ~RdmaCompletionQueue() override;
  const std::shared_ptr<CompletionCore>& core() const { return core_; }

  int PollLocked(Completion* out, int n) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return core_->PollLocked(out, n);
  }
  uint32_t wakes() const override { return core_->wakes(); }
  WaitResult Wait(Deadline deadline, uint32_t wakes) override {
    return core_->Wait(deadline, wakes);
  }
  void Wake() override { core_->Wake(); }
  void Arm(CompletionSink& sink) override { core_->Arm(*this, sink); }

 private:
  Device& device_;
  const std::shared_ptr<CompletionCore> core_;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_COMPLETION_QUEUE_H_
