#include "verbs/rdma/shared_receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "verbs/rdma/connection.h"
#include "verbs/rdma/errors.h"

namespace viaduct::verbs::rdma {
namespace {

// No driver enlarges a queue, so it gets room for a later Resize from the start.
constexpr uint32_t kSmallest = 1024;

}  // namespace

absl::StatusOr<std::shared_ptr<SharedReceiveCore>> SharedReceiveCore::Make(
    Device& device, Memory& memory, std::shared_ptr<DomainCore> domain,
    const SharedReceiveOptions& options) {
  const ibv_device_attr& limits = device.limits();
  if (options.max_segments > static_cast<uint32_t>(limits.max_srq_sge) ||
      options.max_receives > device.max_shared_receives()) {
    return absl::ResourceExhaustedError("a shared receive queue larger than the device has it");
  }
  std::shared_ptr<SharedReceiveCore> core(new SharedReceiveCore(device, memory, std::move(domain)));
  core->depth_ = std::min(std::max(options.max_receives, kSmallest), device.max_shared_receives());
  core->max_segments_ = options.max_segments;
  ibv_srq_init_attr wanted = {};
  wanted.attr.max_wr = core->depth_;
  wanted.attr.max_sge = std::max(options.max_segments, 1u);
  core->handle_ = ibv_create_srq(core->domain_->handle, &wanted);
  if (core->handle_ == nullptr) return ErrnoStatus(errno, "ibv_create_srq");
  core->receives_.resize(core->depth_);
  const SpinLockHolder nobody_else_yet(&core->lock_);
  core->max_receives_ = options.max_receives;
  core->segments_.resize(size_t{core->depth_} * wanted.attr.max_sge);
  core->free_.reserve(core->depth_);
  ibv_sge* segments = core->segments_.data();
  for (SharedReceive& receive : core->receives_) {
    receive.core = core.get();
    receive.segments = segments;
    segments += wanted.attr.max_sge;
    core->free_.push_back(&receive);
  }
  return core;
}

SharedReceiveCore::~SharedReceiveCore() {
  if (handle_ != nullptr) ibv_destroy_srq(handle_);
}

void SharedReceiveCore::Join(uint32_t number, Connection* connection) {
  SpinLockHolder guard(&lock_);
  users_[number] = connection;
}

void SharedReceiveCore::Leave(uint32_t number) {
  SpinLockHolder guard(&lock_);
  users_.erase(number);
}

PostResult SharedReceiveCore::Post(const ReceiveRequest& request) {
  if (request.segments.size() > max_segments_) return PostResult::kTooManySegments;
  SpinLockHolder guard(&lock_);
  if (available_.load(std::memory_order_relaxed) >= max_receives_ || free_.empty()) {
    return PostResult::kQueueFull;
  }
  SharedReceive* const receive = free_.back();
  receive->id = request.id;
  receive->quiet = request.quiet;
  receive->count = static_cast<int>(memory_.TranslateReceive(
      *domain_, request.segments, device_.max_message(), cache_, receive->segments));
  available_.fetch_add(1, std::memory_order_relaxed);
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  free_.pop_back();
  if (!GiveToDevice(*receive)) {
    free_.push_back(receive);
    available_.fetch_sub(1, std::memory_order_relaxed);
    outstanding_.fetch_sub(1, std::memory_order_relaxed);
    return PostResult::kQueueFull;
  }
  return PostResult::kOk;
}

bool SharedReceiveCore::GiveToDevice(SharedReceive& receive) {
  ibv_recv_wr work = {};
  work.wr_id = WorkId::OfShared(&receive);
  work.sg_list = receive.segments;
  work.num_sge = receive.count;
  ibv_recv_wr* bad;
  return ibv_post_srq_recv(handle_, &work, &bad) == 0;
}

void SharedReceiveCore::Complete(const ibv_wc& completion) {
  SharedReceive& receive = *WorkId::SharedOf(completion.wr_id);
  SharedReceiveCore& core = *receive.core;
  Connection* connection = nullptr;
  {
    SpinLockHolder guard(&core.lock_);
    const auto found = core.users_.find(completion.qp_num);
    if (found != core.users_.end()) connection = found->second;
  }
  const bool shown = connection != nullptr && connection->CompleteShared(receive, completion);
  SpinLockHolder guard(&core.lock_);
  // Nobody would poll it, so it is posted again, as if no message had taken it.
  if (!shown && core.GiveToDevice(receive)) return;
  core.free_.push_back(&receive);
  core.available_.fetch_sub(1, std::memory_order_relaxed);
  if (!shown) core.outstanding_.fetch_sub(1, std::memory_order_relaxed);
  core.CheckLimit();
}

absl::Status SharedReceiveCore::Resize(uint32_t max_receives) {
  SpinLockHolder guard(&lock_);
  if (available_.load(std::memory_order_relaxed) > max_receives) {
    return absl::FailedPreconditionError("more receives are posted");
  }
  if (max_receives > depth_) {
    return absl::ResourceExhaustedError("the device's shared receive queue is not that large");
  }
  max_receives_ = max_receives;
  return absl::OkStatus();
}

void SharedReceiveCore::SetLimit(uint32_t limit) {
  SpinLockHolder guard(&lock_);
  limit_ = limit;
  CheckLimit();
}

void SharedReceiveCore::CheckLimit() {
  if (available_.load(std::memory_order_relaxed) >= limit_) return;
  limit_ = 0;
  low_marks_.fetch_add(1);
  sink_errand_.Post(device_.loop(), shared_from_this());
}

void SharedReceiveCore::TellSink() {
  for (uint32_t left = low_marks_.exchange(0); left > 0; --left) {
    SharedReceiveQueue* owner;
    SharedReceiveSink* sink;
    {
      MutexLock guard(&sink_mutex_);
      owner = owner_;
      sink = sink_;
    }
    if (sink == nullptr) return;
    sink->OnLowWatermark(*owner);
  }
}

void SharedReceiveCore::SetSink(SharedReceiveQueue* owner, SharedReceiveSink* sink) {
  MutexLock guard(&sink_mutex_);
  owner_ = owner;
  sink_ = sink;
}

RdmaSharedReceiveQueue::RdmaSharedReceiveQueue(Device& device,
                                               std::shared_ptr<SharedReceiveCore> core,
                                               SharedReceiveSink* sink)
    : device_(device), core_(std::move(core)) {
  core_->SetSink(this, sink);
}

RdmaSharedReceiveQueue::~RdmaSharedReceiveQueue() {
  core_->SetSink(nullptr, nullptr);
  if (!device_.loop().OnExecutor()) device_.loop().Drain();
}

}  // namespace viaduct::verbs::rdma
