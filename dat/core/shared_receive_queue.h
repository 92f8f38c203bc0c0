// SharedReceiveQueue: DAT's SRQ, receives for many endpoints.
#ifndef VIADUCT_DAT_CORE_SHARED_RECEIVE_QUEUE_H_
#define VIADUCT_DAT_CORE_SHARED_RECEIVE_QUEUE_H_

#include <cstdint>
#include <memory>

#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/protection_zone.h"
#include "dat/core/use.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class SharedReceiveQueue final : public Object, private verbs::SharedReceiveSink {
 public:
  static constexpr ObjectType kType = ObjectType::kSharedReceiveQueue;

  // Both numbers are minima.
  static Error Create(InterfaceAdapter& adapter, ProtectionZone& zone, uint32_t max_receives,
                      uint32_t max_segments, Ref<SharedReceiveQueue>* out);
  // kInvalidState while an endpoint uses it. Posted receives are dropped.
  Error Free();
  void Destroy() override;

  // The data path: no system call.
  Error PostReceive(const verbs::ReceiveRequest& request);
  // kInvalidState: Outstanding or the low watermark is above `max_receives`.
  Error Resize(uint32_t max_receives);
  // Posts one kAsyncSharedReceivesLow on the adapter's asynchronous dispatcher when fewer than
  // `limit` receives are posted and not taken, perhaps at once. kInvalidParameter if `limit` is
  // above the queue's size.
  Error SetLowWatermark(uint32_t limit);

  InterfaceAdapter& adapter() const { return *adapter_; }
  ProtectionZone& zone() const { return *zone_; }
  verbs::SharedReceiveQueue* device_queue() { return queue_.get(); }
  uint32_t max_receives() const;
  uint32_t max_segments() const { return max_segments_; }
  uint32_t low_watermark() const;
  uint32_t available() const { return queue_->available(); }
  // Receives that are posted and that the consumer has not dequeued.
  uint32_t Outstanding() const;

  UseCount& uses() { return uses_; }  // by endpoints

 private:
  SharedReceiveQueue(InterfaceAdapter& adapter, Use<ProtectionZone> zone, uint32_t max_receives,
                     uint32_t max_segments);
  ~SharedReceiveQueue() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it
  void OnLowWatermark(verbs::SharedReceiveQueue& queue) override;

  const Ref<InterfaceAdapter> adapter_;
  const Ref<ProtectionZone> zone_;
  Use<ProtectionZone> zone_use_;  // until the queue ends
  const uint32_t max_segments_;
  UseCount uses_;
  mutable verbs::Mutex lock_;
  uint32_t max_receives_ ABSL_GUARDED_BY(lock_);
  uint32_t low_watermark_ ABSL_GUARDED_BY(lock_) = 0;
  std::unique_ptr<verbs::SharedReceiveQueue> queue_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_SHARED_RECEIVE_QUEUE_H_
