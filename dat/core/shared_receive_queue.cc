#include "dat/core/shared_receive_queue.h"

#include <algorithm>

#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::core {
namespace {

constexpr int kMostLooks = 16;

}  // namespace

using verbs::MutexLock;

Error SharedReceiveQueue::Create(InterfaceAdapter& adapter, ProtectionZone& zone,
                                 uint32_t max_receives, uint32_t max_segments,
                                 Ref<SharedReceiveQueue>* out) {
  Use<ProtectionZone> use;
  if (Error error = use.Begin(&zone); !error.ok()) return error;
  auto made = Ref<SharedReceiveQueue>::Adopt(
      new SharedReceiveQueue(adapter, std::move(use), max_receives, max_segments));
  verbs::SharedReceiveOptions options;
  options.domain = &zone.domain();
  options.sink = made.get();
  options.max_receives = max_receives;
  options.max_segments = max_segments;
  auto queue = adapter.context().CreateSharedReceiveQueue(options);
  if (!queue.ok()) return OutOf(Resource::kSharedReceives);
  made->queue_ = *std::move(queue);
  if (Error error = adapter.AddChild(made.get()); !error.ok()) return error;
  *out = std::move(made);
  return Ok();
}

SharedReceiveQueue::SharedReceiveQueue(InterfaceAdapter& adapter, Use<ProtectionZone> zone,
                                       uint32_t max_receives, uint32_t max_segments)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      zone_(zone.ref()),
      zone_use_(std::move(zone)),
      max_segments_(max_segments),
      max_receives_(max_receives) {}

SharedReceiveQueue::~SharedReceiveQueue() = default;

Error SharedReceiveQueue::Free() {
  if (!uses_.End()) return InvalidState(StateDetail::kSharedReceivesInUse);
  return End();
}

void SharedReceiveQueue::Destroy() { (void)End(); }

Error SharedReceiveQueue::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<SharedReceiveQueue>();
  adapter_->RemoveChild(this);
  zone_use_.End();
  DropReference();
  return Ok();
}

Error SharedReceiveQueue::PostReceive(const verbs::ReceiveRequest& request) {
  switch (queue_->PostReceive(request)) {
    case verbs::PostResult::kOk:
      return Ok();
    case verbs::PostResult::kTooManySegments:
      return InvalidParameter(2);
    case verbs::PostResult::kNoKey:
    case verbs::PostResult::kQueueFull:
      break;
  }
  return OutOf(Resource::kSharedReceives);
}

Error SharedReceiveQueue::Resize(uint32_t max_receives) {
  uint32_t outstanding = Outstanding();
  for (int looks = 1; outstanding > max_receives && looks < kMostLooks; ++looks) {
    outstanding = std::min(outstanding, Outstanding());
  }
  MutexLock lock(&lock_);
  if (max_receives < low_watermark_ || max_receives < outstanding) {
    return InvalidState(StateDetail::kSharedReceivesInUse);
  }
  const absl::Status status = queue_->Resize(max_receives);
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    return InvalidState(StateDetail::kSharedReceivesInUse);
  }
  if (!status.ok()) return OutOf(Resource::kSharedReceives);
  max_receives_ = max_receives;
  return Ok();
}

Error SharedReceiveQueue::SetLowWatermark(uint32_t limit) {
  MutexLock lock(&lock_);
  if (limit > max_receives_) return InvalidParameter(2);
  low_watermark_ = limit;
  queue_->SetLimit(limit);
  return Ok();
}

void SharedReceiveQueue::OnLowWatermark(verbs::SharedReceiveQueue&) {
  adapter_->PostAsync(EventType::kAsyncSharedReceivesLow, handle());
}

uint32_t SharedReceiveQueue::Outstanding() const {
  uint32_t queued = 0;
  for (const Ref<Endpoint>& endpoint : adapter_->EndpointsOnSharedQueues()) {
    const Endpoint::Parts parts = endpoint->parts();
    if (parts.shared_receives.get() != this || !parts.receive) continue;
    queued += parts.receive->QueuedReceives(endpoint->handle(), EventDispatcher::Receives::kAll);
  }
  // The device is asked last, after the harvests above: so what stays where it is counts once. What
  // is harvested between the two counts is missed; what is posted again in between counts twice.
  return queue_->outstanding() + queued;
}

uint32_t SharedReceiveQueue::max_receives() const {
  MutexLock lock(&lock_);
  return max_receives_;
}

uint32_t SharedReceiveQueue::low_watermark() const {
  MutexLock lock(&lock_);
  return low_watermark_;
}

}  // namespace viaduct::core
