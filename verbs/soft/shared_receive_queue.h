// The shared receive queue of the soft device: a ring of receives. A queue pair moves one of them
// into its own ring when a message begins to arrive.
//
// Locks: its own spinlock comes after every lock of a queue pair. Its sink runs on the executor.
#ifndef VIADUCT_VERBS_SOFT_SHARED_RECEIVE_QUEUE_H_
#define VIADUCT_VERBS_SOFT_SHARED_RECEIVE_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbs/base/anchor.h"
#include "verbs/base/block.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/soft/receive_line.h"
#include "verbs/soft/region_table.h"
#include "verbs/soft/work_queue.h"

namespace viaduct::verbs {

class SoftContext;
class SoftQueuePair;

class SoftSharedReceiveQueue final : public SharedReceiveQueue, public OnBlocks {
 public:
  // InvalidArgument: no domain, or above the limits; ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<SoftSharedReceiveQueue>> Create(
      SoftContext& context, const SharedReceiveOptions& options);
  ~SoftSharedReceiveQueue() override;

  PostResult PostReceive(const ReceiveRequest& request) override;
  absl::Status Resize(uint32_t max_receives) override;
  void SetLimit(uint32_t limit) override;
  uint32_t available() const override {
    const uint64_t taken = receives_.done.load(std::memory_order_acquire);
    return static_cast<uint32_t>(receives_.posted.load(std::memory_order_acquire) - taken);
  }
  uint32_t outstanding() const override;

  // ------------------------------------------------------------ for queue pairs
  DomainId domain() const { return domain_; }
  uint32_t max_segments() const { return max_segments_; }

  void AddPair(SoftQueuePair& pair);
  void RemovePair(SoftQueuePair& pair);
  // Moves the oldest receive to the end of `to`, which has room. False: there is none, or it is
  // kept for an earlier message; if `pair` holds messages (NoReceive::kHold), it is marked when its
  // turn comes. The pair's inbound lock is held.
  bool Take(SoftQueuePair& pair, WorkQueue<ReceiveEntry>* to);
  // `pair` gives up the message for which Take found nothing. It need not be in the line.
  void StopWaiting(SoftQueuePair& pair);

 private:
  SoftSharedReceiveQueue(SoftContext& context, const SharedReceiveOptions& options);
  // On the executor; the sink may destroy the queue.
  void Run();
  void TellLowMarks();
  // Passes on receives that are kept for pairs that do not come; runs again while others wait for
  // such receives.
  void WatchLine();
  void CheckLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Whether `pair` may take the oldest receive; if not, and it holds messages, it is in the line.
  bool TakeTurn(SoftQueuePair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void WakeLine(Nanos now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // After each change of the line.
  void SettleLine() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  SoftContext& context_;
  SharedReceiveSink* const sink_;
  const DomainId domain_;
  const uint32_t max_segments_;
  const std::shared_ptr<Anchor<&SoftSharedReceiveQueue::Run, SoftSharedReceiveQueue>> anchor_;
  std::atomic<uint32_t> low_marks_{0};  // to be reported to the sink

  mutable SpinLock lock_;
  WorkQueue<ReceiveEntry> receives_;  // `done` and `reaped` count the receives that were taken
  uint32_t max_receives_ ABSL_GUARDED_BY(lock_);
  uint32_t limit_ ABSL_GUARDED_BY(lock_) = 0;  // 0: not armed
  // Any pair may take the receives before this position: all posted ones if the line is empty,
  // otherwise none.
  uint64_t open_ ABSL_GUARDED_BY(lock_) = 0;
  ReceiveLine line_ ABSL_GUARDED_BY(lock_);  // of pairs that hold a message
  std::vector<SoftQueuePair*> pairs_ ABSL_GUARDED_BY(lock_);
  bool watched_ ABSL_GUARDED_BY(lock_) = false;  // WatchLine is due
  std::atomic<bool> watch_asked_{false};         // Run is to call WatchLine
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_SHARED_RECEIVE_QUEUE_H_
