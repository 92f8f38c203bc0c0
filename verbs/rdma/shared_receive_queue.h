// Shared receive queues, which are the device's own. A receive that a message has taken appears in
// the work queue of the pair that got the message.
#ifndef VIADUCT_VERBS_RDMA_SHARED_RECEIVE_QUEUE_H_
#define VIADUCT_VERBS_RDMA_SHARED_RECEIVE_QUEUE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "verbs/base/errand.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/memory.h"

namespace viaduct::verbs::rdma {

class Connection;
class SharedReceiveCore;

struct alignas(8) SharedReceive {
  uint64_t id;
  SharedReceiveCore* core;
  bool quiet;
  int count;          // of its segments
  ibv_sge* segments;  // as the device has them, with room for as many as a receive may have
};

// Lives until the last connection that uses it is buried.
class SharedReceiveCore : public std::enable_shared_from_this<SharedReceiveCore> {
 public:
  static absl::StatusOr<std::shared_ptr<SharedReceiveCore>> Make(
      Device& device, Memory& memory, std::shared_ptr<DomainCore> domain,
      const SharedReceiveOptions& options);
  ~SharedReceiveCore();

  ibv_srq* handle() const { return handle_; }
  const std::shared_ptr<DomainCore>& domain() const { return domain_; }
  // The size of the device's queue.
  uint32_t depth() const { return depth_; }
  std::atomic<uint32_t>& outstanding() { return outstanding_; }

  // From Join to Leave the pair with that number uses it.
  void Join(uint32_t number, Connection* connection);
  void Leave(uint32_t number);
  // Under the lock of the completion queue.
  static void Complete(const ibv_wc& completion);

 private:
  friend class RdmaSharedReceiveQueue;
  SharedReceiveCore(Device& device, Memory& memory, std::shared_ptr<DomainCore> domain)
      : device_(device), memory_(memory), domain_(std::move(domain)) {}

  PostResult Post(const ReceiveRequest& request);
  // False: the device has refused it.
  bool GiveToDevice(SharedReceive& receive) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  absl::Status Resize(uint32_t max_receives);
  void SetLimit(uint32_t limit);
  void SetSink(SharedReceiveQueue* owner, SharedReceiveSink* sink);
  void CheckLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Calls the sink for low watermarks.
  void TellSink();

  Device& device_;
  Memory& memory_;
  const std::shared_ptr<DomainCore> domain_;
  ibv_srq* handle_ = nullptr;
  uint32_t depth_ = 0;
  uint32_t max_segments_ = 1;
  std::atomic<uint32_t> available_{0};
  std::atomic<uint32_t> outstanding_{0};
  SpinLock lock_;
  std::vector<SharedReceive> receives_;
  std::vector<SharedReceive*> free_ ABSL_GUARDED_BY(lock_);
  std::vector<ibv_sge> segments_ ABSL_GUARDED_BY(lock_);
  RegionCache cache_ ABSL_GUARDED_BY(lock_);
  std::unordered_map<uint32_t, Connection*> users_ ABSL_GUARDED_BY(lock_);
  uint32_t max_receives_ ABSL_GUARDED_BY(lock_) = 0;
  uint32_t limit_ ABSL_GUARDED_BY(lock_) = 0;
  std::atomic<uint32_t> low_marks_{0};  // that the sink is still to be told of
  Errand<&SharedReceiveCore::TellSink, std::shared_ptr<SharedReceiveCore>> sink_errand_;
  Mutex sink_mutex_;
  SharedReceiveQueue* owner_ ABSL_GUARDED_BY(sink_mutex_) = nullptr;
  SharedReceiveSink* sink_ ABSL_GUARDED_BY(sink_mutex_) = nullptr;
};

class RdmaSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  RdmaSharedReceiveQueue(Device& device, std::shared_ptr<SharedReceiveCore> core,
                         SharedReceiveSink* sink);
  ~RdmaSharedReceiveQueue() override;
  const std::shared_ptr<SharedReceiveCore>& core() const { return core_; }

  PostResult PostReceive(const ReceiveRequest& request) override { return core_->Post(request); }
  absl::Status Resize(uint32_t max_receives) override { return core_->Resize(max_receives); }
  void SetLimit(uint32_t limit) override { core_->SetLimit(limit); }
  uint32_t available() const override { return core_->available_.load(); }
  uint32_t outstanding() const override { return core_->outstanding_.load(); }

 private:
  Device& device_;
  const std::shared_ptr<SharedReceiveCore> core_;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_SHARED_RECEIVE_QUEUE_H_
