// A virtual completion queue: completions are read directly from the work queues of the active
// pairs. There is no ring of completions, so posting shares nothing between two queue pairs, and
// nothing can overflow.
//
// Activity. A pair is hot, i.e. served by every poll of its completion queues (at most kMaxHot
// per queue), or cold, i.e. served only after it was marked ready. It becomes hot when serving it
// made progress and nobody sleeps on its queues, and cold when a tick or a thread about to sleep
// finds that it made none. So an empty poll costs O(hot), not O(pairs).
//   hot   <=> in the hot lists of all its completion queues <=> Link::Heat was called
// Changing that takes the locks of all its completion queues: one is held, the other is tried.
// Cooling also tries the pair's send lock.
//
// Threads. Any. lock() serializes polls and, for pairs whose home this queue is, everything
// inbound. Where nobody polls, the attendant (executor) makes the progress.
#ifndef VIADUCT_VERBS_SOFT_COMPLETION_QUEUE_H_
#define VIADUCT_VERBS_SOFT_COMPLETION_QUEUE_H_

#include <atomic>
#include <cstdint>

#include "verbs/base/block.h"
#include "verbs/base/pass_lock.h"
#include "verbs/device.h"
#include "verbs/soft/attachment.h"

namespace viaduct::verbs {

class Attendant;
class Doorbell;
class SoftContext;

class SoftCompletionQueue final : public CompletionQueue, public OnBlocks {
 public:
  static constexpr int kMaxHot = 16;

  // `sink` may be null.
  SoftCompletionQueue(SoftContext& context, CompletionSink* sink);
  ~SoftCompletionQueue() override;

  int PollLocked(Completion* out, int n) override;
  uint32_t wakes() const override { return wakes_.load(std::memory_order_seq_cst); }
  WaitResult Wait(Deadline deadline, uint32_t wakes) override;
  void Wake() override;
  void Arm(CompletionSink& sink) override;

  // ------------------------------------------------------------ for queue pairs
  enum class News : bool { kCompletion, kArrival };
  // `attachment` has something to reap, or its link something to receive: the next poll serves it.
  // Wakes sleepers; if there are none, schedules the attendant where nobody else would act. Any
  // thread, under any lock.
  void MarkReady(Attachment& attachment, News news);
  bool HasSleepers() const { return sleepers_.load(std::memory_order_seq_cst) != 0; }

  // Takes `attachment` out of the ready list; lock() is held.
  void Forget(Attachment& attachment);

  // The hot list; lock() is held. May a pair become hot that made progress when it was served by
  // this queue or (TakesHotOfOther) by its other one? Not while a thread sleeps here, and in the
  // second case not while this queue is armed either, since then a thread sleeps elsewhere: nobody
  // would poll the pair, and its news would wait for a tick.
  bool TakesHot() const { return hot_count_ < kMaxHot && !HasSleepers(); }
  bool TakesHotOfOther() const { return TakesHot() && !armed_.load(std::memory_order_relaxed); }
  void AddHot(Attachment& attachment);
  void RemoveHot(Attachment& attachment);

 private:
  class Sleeper;
  friend class Attendant;

  // On the executor: makes progress where nobody polls, cools pairs, and calls the sink if
  // completions wait. True if it wants to be called again at the next tick. The sink may destroy
  // *this.
  bool Attend();

  // ---- lock_ held
  // `n` 0: progress only, no completion is taken.
  int Serve(Completion* out, int n);
  int ServeReady(Completion* out, int n);
  int ServeList(std::atomic<Attachment*>& from, Completion* out, int n);
  // 0 if there is nothing to reap; else a number that changes when more becomes reapable.
  uint64_t Reapable() const;
  // Cools the pairs that made no progress since the last tick, or all of them. False if one could
  // not be cooled, or if one has work again by now.
  bool Cool(bool all);
  void PushReady(Attachment& attachment);
  // Moves all of ready_ to left_, and makes the `previous` pointers of left_ valid.
  void LinkLeft();

  // ---- lock_ free
  bool HasReady() const { return left_.load() != nullptr || ready_.load() != nullptr; }
  bool Look();  // makes progress; true if there is something to reap
  void RingSleepers();
  void LeaveRing();
  WaitResult Spin(uint32_t wakes, Deadline deadline, bool* decided);
  WaitResult Sleep(uint32_t wakes, Deadline deadline);

  SoftContext& context_;
  Doorbell& doorbell_;
  Attendant& attendant_;
  std::atomic<CompletionSink*> sink_;  // set at most once
  std::atomic<bool> armed_{false};     // the next completion is reported at once

  alignas(128) PassLock lock_;  // CompletionQueue::lock()
  int hot_count_ = 0;           // lock_ guards this group
  uint32_t turn_ = 0;           // counts polls
  uint32_t turn_at_tick_ = 0;
  uint64_t told_ = 0;  // what Reapable returned when the sink was called
  Attachment* hot_[kMaxHot];
  std::atomic<bool> tick_{false};  // the attendant found the lock taken: the next poll cools

  alignas(128) std::atomic<Attachment*> ready_{nullptr};  // pushed by anybody, popped under lock_
  std::atomic<Attachment*> left_{nullptr};                // popped, but not served yet; lock_
  bool left_goes_back_ = true;                            // `previous` in left_ is valid; lock_
  std::atomic<uint32_t> sleepers_{0};                     // threads that are about to sleep, or do
  std::atomic<uint32_t> bell_{0};                         // what they sleep on
  std::atomic<uint32_t> wakes_{0};                        // counts calls of Wake

  std::atomic<bool> listed_{false};             // in the attendant's list
  SoftCompletionQueue* listed_next_ = nullptr;  // guarded by the attendant's lock
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_COMPLETION_QUEUE_H_
