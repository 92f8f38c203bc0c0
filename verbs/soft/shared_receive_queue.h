// The shared receive queue of the soft device: a ring of receives, out of which queue pairs move
// one into their own ring when a message begins to arrive.
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
  uint32_t max_receives() const;
  uint32_t max_segments() const { return max_segments_; }

  void AddPair(SoftQueuePair& pair);
  void RemovePair(SoftQueuePair& pair);
  // Moves the oldest receive to the end of `to`, which has room. False: there is none, and `pair`
  // is marked when one is posted. The pair's inbound lock is held.
  bool Take(SoftQueuePair& pair, WorkQueue<ReceiveEntry>* to);

 private:
  SoftSharedReceiveQueue(SoftContext& context, const SharedReceiveOptions& options);
  void TellLowMarks();
  void CheckLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  SoftContext& context_;
  SharedReceiveSink* const sink_;
  const DomainId domain_;
  const uint32_t max_segments_;
  const std::shared_ptr<Anchor<&SoftSharedReceiveQueue::TellLowMarks, SoftSharedReceiveQueue>>
      anchor_;
  std::atomic<uint32_t> low_marks_{0};  // that the sink is to be told of

  mutable SpinLock lock_;
  WorkQueue<ReceiveEntry> receives_;  // `done` and `reaped` count what was taken
  uint32_t max_receives_ ABSL_GUARDED_BY(lock_);
  uint32_t limit_ ABSL_GUARDED_BY(lock_) = 0;  // 0: not armed
  std::vector<SoftQueuePair*> pairs_ ABSL_GUARDED_BY(lock_);
  std::vector<SoftQueuePair*> waiting_ ABSL_GUARDED_BY(lock_);  // a message of theirs is held
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_SHARED_RECEIVE_QUEUE_H_
